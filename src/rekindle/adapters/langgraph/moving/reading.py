"""What LangGraph's own serializer wrote, read so that nothing is altered silently and nothing stored names code to run.

Their serializer imports and calls what a row names, and hands out raw data where that fails or is not allowed. Here
a value is built where its class is one of those they call safe, or is registered with rekindle; all else is refused.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

from langgraph.checkpoint.serde import _msgpack as theirs
from langgraph.checkpoint.serde import jsonplus
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.checkpoint.serde.types import _DeltaSnapshot

from ....errors import CorruptDataError, InvalidInputError, RekindleError, UnsupportedError
from ....state.values.registry import entry_for, require_numpy

PLAIN = frozenset({"null", "bytes", "bytearray", "json", "msgpack"})
Name = tuple[str, str]
"""A module, and a class in it."""


def check_encoding(kind: str | None) -> None:
    """UnsupportedError for a row that only their program could read."""
    if kind in PLAIN:
        return
    if kind == "pickle":
        raise UnsupportedError(
            "pickled", "a value is pickled, and reading it could run anything",
            hint="save it as another type with the program that wrote it; what is not pickled comes over",
        )  # fmt: skip
    if kind is not None and "+" in kind:
        raise UnsupportedError(
            "encrypted", f"it is encrypted ({kind})",
            hint="with its key, copy it to a database that is not: put what their saver lists into another of theirs",
        )  # fmt: skip
    raise UnsupportedError(
        "unknown-encoding", f"it was written by a serializer of its own ({kind})",
        hint="what JsonPlusSerializer writes comes over",
    )  # fmt: skip


class Reader:
    """Reads rows: `read` strictly, `as_theirs` as their own program would that allows the same classes."""

    def __init__(self) -> None:
        self._named: set[Name] = set()  # registered classes that were met
        self._theirs = JsonPlusSerializer(allowed_msgpack_modules=None)
        self._strict = JsonPlusSerializer(allowed_msgpack_modules=None, __unpack_ext_hook__=self._extension)
        self._failures: list[Exception] = []

    def read(self, kind: str | None, data: bytes) -> Any:
        """A new value. InvalidInputError for one whose class is not registered here; CorruptDataError for no value."""
        check_encoding(kind)
        self._failures.clear()
        try:
            if kind == "json":
                value = json.loads(data, object_hook=self._object)
                kind, data = self._strict.dumps_typed(value)  # as their next save would: that is how a value is known
            return self._strict.loads_typed((str(kind), data))
        except RekindleError:
            raise
        except Exception as e:  # whatever their decoder makes of broken bytes, or of what its hook raised
            cause = next(iter(self._failures), e)  # of those on the way up, the first is where it began
            if isinstance(cause, RekindleError):
                raise cause from e
            raise CorruptDataError("bad-row", f"its bytes cannot be read: {cause}") from cause

    def as_theirs(self, kind: str | None, data: bytes) -> Any:
        """The same row by their own code, after `read` found nothing in it to refuse."""
        value = self._theirs.loads_typed((str(kind), data))
        return value if kind != "json" else self._theirs.loads_typed(self._theirs.dumps_typed(value))

    def metadata(self, data: bytes | str | None) -> dict[str, Any]:
        """Metadata: JSON, as their code reads it now, or the msgpack of former versions."""
        if data is None:
            return {}
        raw = data.encode() if isinstance(data, str) else data
        if not raw[:1].strip(b"{ \t\r\n"):
            try:
                made = json.loads(raw)
            except ValueError as e:
                raise CorruptDataError("bad-row", f"its metadata cannot be read: {e}") from e
        else:
            made = self.read("msgpack", raw)
        if not isinstance(made, dict):
            raise CorruptDataError("bad-row", f"its metadata is a {type(made).__name__}")
        return made

    def _extension(self, code: int, data: bytes) -> Any:
        """One extension value; what fails is kept, for their decoder tells of no cause."""
        try:
            return self._built(code, self._strict.loads_typed(("msgpack", data)))
        except Exception as e:
            self._failures.append(e)
            raise

    def _built(self, code: int, held: Any) -> Any:
        """The same as their `ext_hook`, but for what that does when it cannot."""
        if code == jsonplus.EXT_DELTA_SNAPSHOT:
            return _DeltaSnapshot(held)
        if code == jsonplus.EXT_NUMPY_ARRAY:
            dtype, shape, order, buffer = held
            numpy = require_numpy()
            return numpy.frombuffer(buffer, dtype=numpy.dtype(dtype)).reshape(shape, order=order)
        make = _MAKERS.get(code)
        if make is None:
            raise UnsupportedError("unknown-encoding", f"it holds an extension of a newer langgraph ({code})")
        name = (held[0], held[1])
        if code == jsonplus.EXT_METHOD_SINGLE_ARG:
            if (*name, held[3]) not in theirs.SAFE_MSGPACK_METHODS:
                raise _not_allowed(name)
            return _made(name, lambda: make(getattr(_safe(name), held[3]), held[2]))
        cls = self._class(name)
        return _made(name, lambda: make(cls, held[2]))

    def _class(self, name: Name) -> Any:
        """The class of that name, if values of it may be built: nothing is imported for any other."""
        if name in theirs.SAFE_MSGPACK_TYPES:
            return _safe(name)
        module = sys.modules.get(name[0])
        found = vars(module).get(name[1]) if module is not None else None  # getattr might make the module import more
        if not isinstance(found, type) or entry_for(found) is None:
            raise _not_allowed(name)
        if name not in self._named:
            self._named.add(name)
            allowed = sorted(self._named)
            self._theirs = JsonPlusSerializer(allowed_msgpack_modules=allowed, allowed_json_modules=allowed)
        return found

    def _object(self, value: dict[str, Any]) -> Any:
        """An object of the JSON that former versions wrote."""
        if value.get("lc") == 1 and value.get("type") in ("constructor", "secret", "not_implemented"):
            return _made(_name_of(value), lambda: _revived(value))
        if value.get("lc") == 2 and value.get("type") == "constructor" and value.get("id") is not None:
            name = _name_of(value)
            cls = self._class(name)
            return _made(name, lambda: cls(*(value.get("args") or ()), **(value.get("kwargs") or {})))
        return value


def _safe(name: Name) -> Any:
    return getattr(import_module(name[0]), name[1])


def _name_of(value: dict[str, Any]) -> Name:
    *module, name = map(str, value.get("id") or ["?"])
    return ".".join(module), name


def _revived(value: dict[str, Any]) -> Any:
    """A value of langchain's own classes; they refuse every other."""
    if value["type"] != "constructor":
        raise ValueError(f"it was kept as {value['type']}")
    return jsonplus.LC_REVIVER(value)


def _made(name: Name, make: Callable[[], Any]) -> Any:
    try:
        return make()
    except RekindleError:
        raise
    except Exception as e:  # a class's own code may raise anything
        raise InvalidInputError(
            "type-load-failed", f"a value of {'.'.join(name)} cannot be rebuilt: {type(e).__name__}: {e}"
        ) from e


def _not_allowed(name: Name) -> InvalidInputError:
    hint = "name the module that registers it with rekindle: --import your.module"
    if name[0] == "__main__":
        hint = "its class is of a script: register it there, and call rekindle.adapters.langgraph.moving.move there"
    return InvalidInputError(
        "type-unregistered", f"it holds a value of {'.'.join(name)}, which is not registered", hint=hint
    )


def _model(cls: Any, fields: dict[str, Any]) -> Any:
    """A model of pydantic's, also where its fields are not what it would take now: as their code does it."""
    try:
        return cls(**fields)
    except Exception:  # noqa: BLE001 - validators are users' code
        return cls.model_construct(**fields)


def _old_model(cls: Any, fields: dict[str, Any]) -> Any:
    try:
        return cls(**fields)
    except Exception:  # noqa: BLE001
        return cls.construct(**fields)


def _placed(cls: Any, args: Any) -> Any:
    if (cls.__module__, cls.__name__) == ("langgraph.types", "Send"):
        return jsonplus._send_from_args(args)
    return cls(*args)


_MAKERS: dict[int, Callable[[Any, Any], Any]] = {
    jsonplus.EXT_CONSTRUCTOR_SINGLE_ARG: lambda cls, arg: cls(arg),
    jsonplus.EXT_CONSTRUCTOR_POS_ARGS: _placed,
    jsonplus.EXT_CONSTRUCTOR_KW_ARGS: lambda cls, fields: cls(**fields),
    jsonplus.EXT_METHOD_SINGLE_ARG: lambda method, arg: method(arg),
    jsonplus.EXT_PYDANTIC_V1: _old_model,
    jsonplus.EXT_PYDANTIC_V2: _model,
}
