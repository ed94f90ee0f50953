"""Who is measured: rekindle and its peers behind one small protocol."""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

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


class OpenPeer(Protocol):
    def __call__(self, folder: Path) -> Peer: ...


class NotInstalled(Exception):
    """The peer's library is not there: the bench says so beside every figure it would have been in."""


@dataclass(frozen=True)
class PeerName:
    """Where a peer is, loaded only when it runs: one missing library must not stop the others."""

    module: str
    factory: str

    def load(self) -> OpenPeer:
        try:
            module = importlib.import_module(f"bench.peers.{self.module}")
        except ModuleNotFoundError as error:
            raise NotInstalled(f"{self.module}: {error}") from error
        opener: OpenPeer = getattr(module, self.factory)
        return opener


OURS = PeerName("ours", "Ours")
SQLITE_SAVER = PeerName("langgraph_savers", "sqlite_saver")
LANGGRAPH = (
    SQLITE_SAVER,
    PeerName("langgraph_savers", "sqlite_saver_delta"),
    PeerName("langgraph_savers", "memory_saver"),
    PeerName("langgraph_savers", "memory_saver_delta"),
)
PEERS = (
    *LANGGRAPH,
    PeerName("agent_framework_files", "AgentFrameworkFiles"),
    PeerName("pickle_sqlite", "PickleSqlite"),
    PeerName("json_files", "JsonFiles"),
)
