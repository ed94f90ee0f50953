"""The simplest thing that works: a JSON file a checkpoint."""

from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

from bench.measure import folder_bytes, sync
from bench.payloads import State


class JsonFiles:
    name = "JSON files"
    durability = "file and folder synced; bytes as base64"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._directory = os.open(folder, os.O_RDONLY)
        self._count = 0
        self._latest: dict[str, Path] = {}

    def save(self, thread: str, state: State) -> None:
        path = self._folder / f"{thread}-{self._count:06d}.json"
        self._count += 1
        with path.open("w", encoding="utf-8") as file:
            file.write(json.dumps(state, ensure_ascii=False, default=_bytes_to_json))
            file.flush()
            sync(file.fileno())
        os.fsync(self._directory)
        self._latest[thread] = path

    def restore_latest(self, thread: str) -> State:
        text = self._latest[thread].read_text(encoding="utf-8")
        state: State = json.loads(text, object_hook=_bytes_from_json)
        return state

    def close(self) -> None:
        os.close(self._directory)

    def bytes_held(self) -> int:
        return folder_bytes(self._folder)


def _bytes_to_json(value: Any) -> dict[str, str]:
    if not isinstance(value, bytes):
        raise TypeError(f"JSON has no {type(value).__name__}")
    return {"base64": base64.b64encode(value).decode("ascii")}


def _bytes_from_json(value: dict[str, Any]) -> Any:
    return base64.b64decode(value["base64"]) if value.keys() == {"base64"} else value
