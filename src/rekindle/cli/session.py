"""What every command starts from: the settings, the store they name, and where answers go."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..errors import InvalidInputError, NotFoundError
from ..refs import Ref, parse_ref, quote_agent
from .app import Settings, Verb
from .output import Output

if TYPE_CHECKING:
    from ..model import Checkpoint
    from ..store import Store

F = TypeVar("F", bound=Callable[..., Any])


class Session:
    """One run of the program. The store opens when it is first needed, and is not made by looking."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.out = Output(json=settings.json, color=settings.color)
        self._opened: Store | None = None

    @property
    def store(self) -> Store:
        return self.open()

    def open(self, *, create: bool = False) -> Store:
        """The store, the same one for all that a command does."""
        from ..store import open_store

        if self._opened is None:
            self._opened = open_store(self.settings.store, user=self.settings.user, create=create)
        return self._opened

    def close(self) -> None:
        if self._opened is not None:
            self._opened.close()

    def the_agent(self) -> str:
        """The one agent there is, for commands that were told none."""
        agents = self.store.agents()
        if not agents:
            raise NotFoundError("no-agents", "there are no checkpoints yet", hint="an agent saves the first one")
        if len(agents) > 1:
            some = ", ".join(quote_agent(name) for name in agents[:5]) + (", ..." if agents[5:] else "")
            raise InvalidInputError("which-agent", f"say which agent: there are {len(agents)}", hint=some)
        return agents[0]

    def parsed(self, text: str | None) -> Ref:
        """A reference from the line; without a name, or none at all, it is of the one agent there is."""
        ref = parse_ref(text) if text is not None else Ref(None)
        return ref if ref.name is not None else Ref(self.the_agent(), ref.at, ref.path)

    def agent_of(self, text: str) -> str:
        """The agent that is meant where an agent, or anything of it, is named."""
        ref = self.parsed(text)
        if ref.at is None and ref.name in self.store.agents():
            return ref.name
        return self.store.get(ref).agent_id

    def value(self, ref: Ref | Checkpoint) -> Any:
        """The state, or the place in it that a reference names; values of users' types come as data."""
        from ..state.shown import path

        value = self.store.restore(ref, opaque=True)
        at = ref.path if isinstance(ref, Ref) else None
        return value if not at else path.get(value, path.parse(at))

    def last_operation(self, verb: str) -> int | None:
        """The number of the operation just done, which `undo` takes."""
        past = self.store.operations()
        return past[-1].seq if past and past[-1].verb == verb else None


def verb(name: str, *, examples: tuple[str, ...], **more: Any) -> Callable[[Callable[..., Any]], Verb]:
    """A command: called with a session, which is closed after it. A number it answers is the exit code."""

    def made(function: Callable[..., Any]) -> Verb:
        def called(**arguments: Any) -> Any:
            settings = click.get_current_context().find_root().ensure_object(Settings)
            session = Session(settings)
            try:
                return function(session, **arguments)
            finally:
                session.close()

        update_wrapper(called, function)
        return click.command(name, cls=Verb, examples=examples, **more)(called)

    return made


def ref_argument(name: str = "ref", **more: Any) -> Callable[[F], F]:
    from .completing import complete_ref

    return click.argument(name, shell_complete=complete_ref, metavar=_metavar(name, more), **more)


def agent_argument(name: str = "agent", **more: Any) -> Callable[[F], F]:
    from .completing import complete_agent

    return click.argument(name, shell_complete=complete_agent, metavar=_metavar(name, more), **more)


def _metavar(name: str, more: dict[str, Any]) -> str:
    shown = str(more.pop("metavar", name.upper()))
    return f"[{shown}]" if shown and more.get("required") is False else shown
