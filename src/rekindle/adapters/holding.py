"""What an object holds, taken as a state; and a state put back into that very object.

A dict or a list is its own state. Of any other object it is what it holds in attributes (its dict and its slots), or
what `to_state()` of its class says, or what two functions of the caller do. Putting back runs no code of the class
but `from_state()`, and leaves the object in its place: whoever holds it sees what was put there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

from ..errors import InvalidInputError, RekindleError
from ..state.tracked import TrackedDict, TrackedList
from ..state.values import codec, shapes
from ..state.values.shapes import _attributes as attributes_of
from ..state.values.shapes import _slots as slots_of

_NEVER = (type, ModuleType, FunctionType, BuiltinFunctionType, MethodType, type(None), *shapes.BASES)
_HOOKS = "say how: track(obj, ..., save=lambda obj: state, restore=lambda obj, state: ...)"


@dataclass(frozen=True, slots=True)
class Holding:
    """What `take` answers is the object's own, not a copy: save it before the object goes on."""

    take: Callable[[], Any]
    put: Callable[[Any], object]
    named: bool
    """Whether a state is a dict of what the object holds by name, so that a name can be left out."""


def holding(
    obj: Any,
    *,
    save: Callable[[Any], Any] | None = None,
    restore: Callable[[Any, Any], object] | None = None,
    exclude: Collection[str] = (),
) -> Holding:
    """How to take what `obj` holds, and put it back. InvalidInputError: it holds nothing that could be taken."""
    if isinstance(exclude, str):
        exclude = (exclude,)
    if (save is None) != (restore is None):
        raise InvalidInputError("bad-hook", "save= and restore= go together, and one of them is missing", hint=_HOOKS)
    if save is not None and restore is not None:
        _no_names(exclude, "what save= answers is saved")
        return Holding(lambda: save(obj), lambda state: restore(obj, state), named=False)
    if isinstance(obj, dict):
        return _of_dict(obj, exclude)
    if isinstance(obj, list):
        _no_names(exclude, "the items of a list have no names")
        return _of_list(obj)
    if isinstance(obj, _NEVER):
        raise _cannot_track(obj)
    if hasattr(type(obj), "to_state") and hasattr(type(obj), "from_state"):
        _no_names(exclude, "what to_state() answers is saved")
        return _of_hooks(obj)
    return _of_object(obj, exclude)


def unsavable(obj: Any, state: Any) -> InvalidInputError | None:
    """The error that names everything in a state by name that cannot be saved; None where nothing is."""
    wrong: dict[str, str] = {}
    for name, value in state.items():
        try:
            codec.pack({name: value})
        except RekindleError as e:
            wrong[name] = e.message
    if not wrong:
        return None
    left_out = ", ".join(map(repr, wrong)) + ("," if len(wrong) == 1 else "")
    return InvalidInputError(
        "attribute-unsavable", f"what a {type(obj).__qualname__} holds cannot be saved: {'; '.join(wrong.values())}",
        hint=f"leave it out: track(..., exclude=({left_out})); or register its class: rekindle.register(...)",
    )  # fmt: skip


# -- dicts and lists -------------------------------------------------------------------------------------------------


def _of_dict(obj: Any, exclude: Collection[str]) -> Holding:
    _must_be_all_there_is(obj)

    def take() -> Any:
        if exclude or type(obj) not in (dict, TrackedDict):
            return {key: value for key, value in obj.items() if key not in exclude}
        return obj

    def put(state: Any) -> None:
        if not isinstance(state, dict):
            raise _does_not_fit(obj, state)
        kept = {key: obj[key] for key in exclude if key in obj}
        obj.clear()
        obj.update({key: value for key, value in state.items() if key not in exclude} | kept)

    return Holding(take, put, named=True)


def _of_list(obj: Any) -> Holding:
    _must_be_all_there_is(obj)

    def put(state: Any) -> None:
        if not isinstance(state, list):
            raise _does_not_fit(obj, state)
        obj[:] = list(state)

    return Holding(lambda: obj if type(obj) in (list, TrackedList) else list(obj), put, named=False)


def _must_be_all_there_is(obj: Any) -> None:
    """A dict or list that holds attributes beside its items would lose them."""
    if getattr(obj, "__dict__", None):
        raise InvalidInputError(
            "cannot-track", f"a {type(obj).__qualname__} holds attributes beside its items", hint=_HOOKS
        )


# -- objects ---------------------------------------------------------------------------------------------------------


def _of_hooks(obj: Any) -> Holding:
    def put(state: Any) -> None:
        own = next(vars(base)["from_state"] for base in type(obj).__mro__ if "from_state" in vars(base))
        made = obj.from_state(state)
        if made is not None and made is not obj:
            _fill(obj, attributes_of(made), kept=())
        elif made is None and isinstance(own, (classmethod, staticmethod)):
            raise InvalidInputError("bad-hook", f"from_state() of {type(obj).__qualname__} answered None")

    return Holding(obj.to_state, put, named=False)


def _of_object(obj: Any, exclude: Collection[str]) -> Holding:
    cls = type(obj)
    try:
        shapes._refuse_what_is_out_of_reach(cls, object)
    except InvalidInputError as e:
        if not hasattr(cls, "__struct_fields__"):
            raise _cannot_track(obj) from e
    if not hasattr(obj, "__dict__") and not slots_of(cls) and not hasattr(cls, "__struct_fields__"):
        raise _cannot_track(obj)
    if getattr(getattr(cls, "__struct_config__", None), "frozen", False):
        raise InvalidInputError("cannot-track", f"a {cls.__qualname__} is frozen", hint=_HOOKS)
    born_with = frozenset(_held(obj))

    def take() -> dict[str, Any]:
        return {name: value for name, value in _held(obj).items() if name not in exclude}

    def put(state: Any) -> None:
        if not isinstance(state, dict) or not all(isinstance(name, str) for name in state):
            raise _does_not_fit(obj, state)
        _fill(obj, {name: value for name, value in state.items() if name not in exclude}, kept={*exclude, *born_with})

    return Holding(take, put, named=True)


def _held(obj: Any) -> dict[str, Any]:
    fields = getattr(obj, "__struct_fields__", ())
    return {name: getattr(obj, name) for name in fields if hasattr(obj, name)} | attributes_of(obj)


def _fill(obj: Any, attributes: Mapping[str, Any], *, kept: Collection[str]) -> None:
    """Give it these attributes, and take from it what is neither among them nor `kept`. No code of its class runs."""
    own = getattr(obj, "__dict__", None)
    fields = getattr(obj, "__struct_fields__", ())
    fixed = {*slots_of(type(obj)), *fields}
    plain: Any = type(obj) if fields else object  # a struct can only be changed by its own means
    if own is None and (homeless := [name for name in attributes if name not in fixed]):
        raise _does_not_fit(obj, attributes, f"it has no place for {homeless[0]!r}")
    for name in _held(obj).keys() - attributes.keys() - set(kept):
        if name in fixed:
            plain.__delattr__(obj, name)
        elif own is not None:
            del own[name]
    for name, value in attributes.items():
        if name in fixed or own is None:
            plain.__setattr__(obj, name, value)
        else:
            own[name] = value


# -- what cannot be --------------------------------------------------------------------------------------------------


def _no_names(exclude: Collection[str], why: str) -> None:
    if exclude:
        raise InvalidInputError("bad-hook", f"exclude= does nothing here: {why}", hint="leave it out there")


def _cannot_track(obj: Any) -> InvalidInputError:
    return InvalidInputError(
        "cannot-track", f"what a {type(obj).__qualname__} holds is not in attributes of its own", hint=_HOOKS
    )


def _does_not_fit(obj: Any, state: Any, why: str = "") -> InvalidInputError:
    return InvalidInputError(
        "state-does-not-fit",
        f"a state that is a {type(state).__qualname__} does not fit a {type(obj).__qualname__}"
        + (f": {why}" if why else ""),
        hint="track it under another agent id, or read the state with store.restore()",
    )
