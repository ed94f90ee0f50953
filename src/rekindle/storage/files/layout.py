"""Where a files store keeps what: the names of its folders and files.

rekindle.json  lock  intents/  packs/
users/<user>/agents/<agent>/agent.json  00000042.json  groups/00000042-0-<digest>.json
users/<user>/aliases/<alias>.json
users/<user>/shared/<digest>
"""

from __future__ import annotations

import hashlib
import posixpath
import re

from ..base import Key

MARKER = "rekindle.json"
LOCK = "lock"
INTENTS = "intents"
PACKS = "packs"
USERS = "users"
AGENTS = "agents"
ALIASES = "aliases"
SHARED = "shared"
GROUPS = "groups"
AGENT = "agent.json"
_OPERATIONS = "~operations"
_LONGEST = 100
_SAFE = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_-")
_RECORD = re.compile(r"([0-9]{8,10})\.json")
_GROUP = re.compile(r"([0-9]{8,10})-[0-9]+-[0-9a-f]{16}\.json")


def encoded(text: str) -> str:
    """A name that no other text gets, on a file system that ignores case too, and that is no path."""
    if not text:
        return _OPERATIONS
    name = "".join(c if c in _SAFE else "".join(f"%{byte:02x}" for byte in c.encode()) for c in text)
    if len(name) <= _LONGEST:
        return name
    return f"{name[:60]}~{hashlib.sha256(text.encode()).hexdigest()[:32]}"


def user_folder(user: str) -> str:
    return posixpath.join(USERS, encoded(user))


def agent_folder(key: Key) -> str:
    return posixpath.join(user_folder(key.user), AGENTS, encoded(key.agent))


def record_path(key: Key, seq: int) -> str:
    return posixpath.join(agent_folder(key), f"{seq:08d}.json")


def group_name(seq: int, slot: int, digest: bytes) -> str:
    return f"{seq:08d}-{slot}-{digest.hex()}.json"


def alias_path(user: str, alias: str) -> str:
    return posixpath.join(user_folder(user), ALIASES, encoded(alias) + ".json")


def shared_path(user: str, digest: bytes) -> str:
    return posixpath.join(user_folder(user), SHARED, digest.hex())


def seq_of(name: str) -> int | None:
    """The seq of a record's file; None for any other name."""
    match = _RECORD.fullmatch(name)
    return int(match[1]) if match and name == f"{int(match[1]):08d}.json" else None


def digest_of(name: str) -> bytes | None:
    """The digest whose entry of the shared index has that name; None for any other name."""
    try:
        return bytes.fromhex(name) if name.islower() or name.isdecimal() else None
    except ValueError:
        return None


def group_seq(name: str) -> int | None:
    match = _GROUP.fullmatch(name)
    return int(match[1]) if match else None
