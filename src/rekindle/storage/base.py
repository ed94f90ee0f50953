"""The storage contract: where records and packs lie. A storage knows bytes and keys; what they mean is above it.

A record's key is (user, agent, seq). Creating it is the compare-and-swap every write rests on: a seq is given once,
and whoever comes second is told. Records are never changed but by `sweep`, which empties slots nobody names any
more. An agent named "" is a user's operation log. An agent may have a journal: records of a sequence of their own,
which belong to its checkpoints and are none themselves.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol

OPERATIONS = ""
"""The agent whose records are a user's operation log."""

_JOURNAL = "\x01"
"""Before an agent's name: its journal. No name that people give holds a control character."""


def journal_of(agent: str) -> str:
    """The name its journal has among the agents of a storage."""
    return _JOURNAL + agent


def is_journal(agent: str) -> bool:
    return agent.startswith(_JOURNAL)


def agent_of(journal: str) -> str:
    return journal.removeprefix(_JOURNAL)


def has_checkpoints(agent: str) -> bool:
    """Whether its records are checkpoints: it is neither a journal nor an operation log."""
    return agent != OPERATIONS and not agent.startswith(_JOURNAL)


class Key(NamedTuple):
    user: str
    agent: str


@dataclass(frozen=True, slots=True)
class Record:
    """What one save appends. `alias` is an id the caller brought; `shared` are digests of slots others may use."""

    key: Key
    seq: int
    head: bytes
    body: bytes
    alias: str | None = None
    shared: tuple[tuple[bytes, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Append:
    """Records that come into being together. `guard` is the user's newest operation the writer has seen."""

    records: tuple[Record, ...]
    guard: int


class Outcome(Enum):
    CREATED = "created"
    TAKEN = "taken"
    """Another writer has that seq: look at what it wrote, and try the next."""
    STALE = "stale"
    """The user's operation log has moved on (something was pruned, deleted, collected): look again first."""
    KNOWN = "known"
    """A record with that alias is there already: nothing was written."""


class Stored(NamedTuple):
    seq: int
    head: bytes


class Rewrite(NamedTuple):
    """A record with dead slots emptied; or taken out altogether, with head None.

    An agent's newest record is never taken out: its seq must not be given again.
    """

    key: Key
    seq: int
    head: bytes | None
    body: bytes


class PackWriter(Protocol):
    """A pack being written. Its ranges may be named by a record once `seal` has returned: they are durable then."""

    def append(self, data: bytes) -> int:
        """Add bytes at the end; answers the offset they begin at."""

    def seal(self) -> None: ...
    def abort(self) -> None: ...


class Packs(ABC):
    """Large byte strings, written once as a stream and read by ranges."""

    @abstractmethod
    def create(self, pack_id: bytes) -> PackWriter: ...
    @abstractmethod
    def read(self, pack_id: bytes, offset: int, length: int) -> bytes: ...
    @abstractmethod
    def list(self) -> list[tuple[bytes, int]]:
        """(id, bytes it takes) of every sealed or abandoned pack."""

    @abstractmethod
    def delete(self, pack_id: bytes) -> None:
        """Harmless where it is gone already."""


class Storage(ABC):
    """One store's bytes. All calls are safe from several threads; those that write are safe from several processes.

    Errors are rekindle's own: UnavailableError (busy, full, unreachable), CorruptDataError, UnsupportedError.
    """

    url: str
    compresses: bool = True
    """Whether slots come compressed. A storage that people read says no."""
    concurrent: bool = True
    """Whether other processes may have it open at the same time."""

    @property
    @abstractmethod
    def packs(self) -> Packs: ...

    @property
    @abstractmethod
    def secret(self) -> bytes:
        """32 random bytes made with the store: hash keys of its users come from them."""

    # -- writing ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def append(self, batch: Sequence[Append]) -> list[Outcome]:
        """Make records durable, in one commit where the storage can; each Append is whole or not there at all."""

    @abstractmethod
    def sweep(self, edits: Sequence[Rewrite], guard: int, user: str, forget: Sequence[bytes] = ()) -> bool:
        """Empty slots, take out records, drop digests from the shared index, in one commit.

        False, and nothing done, where the user's operation log is beyond `guard`.
        """

    @abstractmethod
    def shrink(self) -> bool:
        """Give freed space back, a step of some ms at a time; True while there is more to do."""

    # -- reading ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def keys(self, user: str | None = None) -> list[Key]:
        """Every agent there is, operation logs included; of one user or of all."""

    @abstractmethod
    def heads(self, key: Key, *, before: int | None = None, limit: int | None = None) -> list[Stored]:
        """Newest first: at most `limit`, with seq < `before`. Reads no bodies."""

    @abstractmethod
    def head(self, key: Key, seq: int) -> bytes | None: ...

    @abstractmethod
    def bodies(self, key: Key, spans: Sequence[tuple[int, int]]) -> Iterable[tuple[int, bytes]]:
        """(seq, body) of every record with first <= seq <= last of a span."""

    @abstractmethod
    def find_shared(self, user: str, digest: bytes) -> tuple[str, int, int] | None:
        """(agent, seq, slot) where that run lies."""

    @abstractmethod
    def shared_in(self, key: Key, spans: Sequence[tuple[int, int]]) -> list[tuple[bytes, int, int]]:
        """(digest, seq, slot) of every entry of the shared index that points into these records."""

    @abstractmethod
    def find_alias(self, user: str, alias: str) -> tuple[str, int] | None:
        """(agent, seq) of the record that carries that id."""

    @abstractmethod
    def newest_operation(self, user: str) -> int:
        """The seq of the user's newest operation; 0 when there is none."""

    # -- the whole ---------------------------------------------------------------------------------------------------

    @abstractmethod
    def check(self) -> list[str]:
        """What is wrong below the records (file structure, indexes, stray files), a line each; [] when sound."""

    @abstractmethod
    def size(self) -> dict[str, int]:
        """Bytes on disk by what they are for; their sum is what the store takes."""

    @abstractmethod
    def close(self) -> None:
        """Harmless a second time; every other call then is UnavailableError."""
