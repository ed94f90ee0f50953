"""numpy arrays and scalars <-> plain values: their dtype as data, and their bytes."""

from __future__ import annotations

from typing import Any

from ...errors import CorruptDataError
from .registry import require_numpy


def array_data(numpy: Any, value: Any) -> list[Any] | None:
    """[dtype, shape, order, bytes] of an array, [dtype, bytes] of a scalar; None where it would not come back so."""
    if not isinstance(value, (numpy.ndarray, numpy.generic)) or value.dtype.hasobject:
        return None
    if type(value) not in (numpy.ndarray, value.dtype.type):
        return None
    stored = _dtype_data(value.dtype)
    if _dtype(numpy, stored).type is not value.dtype.type:  # records come back as plain structures
        return None
    if isinstance(value, numpy.generic):
        return [stored, value.tobytes()[: value.nbytes]]  # an empty text has bytes of its own
    order = "F" if value.flags.f_contiguous and not value.flags.c_contiguous else "C"
    return [stored, list(value.shape), order, value.tobytes(order)]


def array_of(stored: Any, shape: Any, order: str, data: bytes | bytearray) -> Any:
    numpy = require_numpy()
    array = numpy.ndarray(shape, _dtype(numpy, stored), data, order=order)
    if array.nbytes != len(data) and array.itemsize:
        raise CorruptDataError("bad-value", "an array is not as long as it says")
    return array


def _dtype_data(dtype: Any) -> Any:
    """A dtype as data: its text; of a structured one its fields, with where they lie if not one after another."""
    if dtype.names is None:
        return dtype.str
    fields, places, end = [], [], 0
    for name in dtype.names:
        held, at, *title = dtype.fields[name]
        base, shape = held.subdtype or (held, ())
        fields.append([[*title, name] if title else name, _dtype_data(base), *([list(shape)] if shape else [])])
        places.append(at)
        end = end + held.itemsize if at == end else -1
    if fields and end == dtype.itemsize and not dtype.isalignedstruct:
        return fields
    return {"fields": fields, "places": places, "size": dtype.itemsize, "aligned": dtype.isalignedstruct}


def _dtype(numpy: Any, stored: Any) -> Any:
    about = stored if isinstance(stored, dict) else {"fields": stored}
    if isinstance(stored, str):
        dtype = numpy.dtype(stored)
    else:
        fields = [_dtype_field(numpy, *field) for field in about["fields"]]
        dtype = numpy.dtype(fields) if about is not stored else _dtype_laid_out(numpy, fields, about)
    if dtype.hasobject:
        raise CorruptDataError("bad-value", "an array of Python objects is never stored")
    return dtype


def _dtype_field(numpy: Any, name: Any, stored: Any, shape: Any = ()) -> tuple[Any, Any]:
    base = _dtype(numpy, stored)
    return tuple(name) if isinstance(name, list) else name, numpy.dtype((base, tuple(shape))) if shape else base


def _dtype_laid_out(numpy: Any, fields: list[tuple[Any, Any]], about: dict[str, Any]) -> Any:
    names = [name if isinstance(name, tuple) else (None, name) for name, _ in fields]
    laid_out = {
        "names": [name for _, name in names], "titles": [title for title, _ in names],
        "formats": [held for _, held in fields], "offsets": about["places"], "itemsize": about["size"],
    }  # fmt: skip
    return numpy.dtype(laid_out, align=about["aligned"])
