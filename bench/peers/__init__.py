"""Who is measured: rekindle and its peers behind one small protocol."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from bench.payloads import State


class Peer(Protocol):
    """A store of whole states by thread, open from its construction until `close`."""

    name: str
    durability: str

    def save(self, thread: str, state: State) -> None:
        """Keep `state` as the thread's newest checkpoint. The caller changes `state` in place afterwards."""

    def restore_latest(self, thread: str) -> State: ...

    def close(self) -> None: ...

    def bytes_held(self) -> int:
        """Bytes on disk once closed; for one that has no disk, the encoded bytes in memory."""


class GraphSaver(Protocol):
    """A LangGraph checkpointer, open from its construction until `close`; opened again, it goes on."""

    name: str
    durability: str
    saver: Any  # a BaseCheckpointSaver
    delta: bool  # the graph it saves must keep its messages in a DeltaChannel

    def bytes_now(self) -> int:
        """Bytes of its data while it is open: what the file will have once closed, or close to it."""

    def collect(self) -> None:
        """Give the space of deleted threads back, where it can."""

    def close(self) -> None: ...

    def bytes_held(self) -> int:
        """Bytes on disk once closed."""


Kind = TypeVar("Kind", covariant=True)


class Opener(Protocol[Kind]):
    def __call__(self, folder: Path) -> Kind: ...


class NotInstalled(Exception):
    """The peer's library is not there: the bench says so beside every figure it would have been in."""


@dataclass(frozen=True)
class PeerName(Generic[Kind]):
    """Where a peer is, loaded only when it runs: one missing library must not stop the others."""

    module: str
    factory: str

    def load(self) -> Opener[Kind]:
        try:
            module = importlib.import_module(f"bench.peers.{self.module}")
        except ModuleNotFoundError as error:
            raise NotInstalled(f"{self.module}: {error}") from error
        opener: Opener[Kind] = getattr(module, self.factory)
        return opener


OURS: PeerName[Peer] = PeerName("ours", "Ours")
SQLITE_SAVER: PeerName[Peer] = PeerName("langgraph_savers", "sqlite_saver")
LANGGRAPH: tuple[PeerName[Peer], ...] = (
    SQLITE_SAVER,
    PeerName("langgraph_savers", "sqlite_saver_delta"),
    PeerName("langgraph_savers", "memory_saver"),
    PeerName("langgraph_savers", "memory_saver_delta"),
)
PEERS: tuple[PeerName[Peer], ...] = (
    *LANGGRAPH,
    PeerName("agent_framework_files", "AgentFrameworkFiles"),
    PeerName("pickle_sqlite", "PickleSqlite"),
    PeerName("json_files", "JsonFiles"),
)

# Savers of a real graph: theirs, one that does nothing, ours.
THEIRS: PeerName[GraphSaver] = PeerName("graph_savers", "Theirs")
THEIRS_DELTA: PeerName[GraphSaver] = PeerName("graph_savers", "TheirsDelta")
NOTHING: PeerName[GraphSaver] = PeerName("graph_savers", "Nothing")
VERIFIED: PeerName[GraphSaver] = PeerName("ours_langgraph", "Verified")
TRUSTED: PeerName[GraphSaver] = PeerName("ours_langgraph", "Trusted")
