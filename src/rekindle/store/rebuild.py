"""`python -m rekindle.store.rebuild`: restores checkpoints in a process that has nothing but rekindle.

Reads JSON lines: {"url", "user", "imports"}, then [agent, seq] each; answers [agent, seq, failure or null] each.
`imports` are the caller's own modules, named on its command line, which register its types.
"""

from __future__ import annotations

import importlib
import json
import sys

from ..storage.base import Storage
from .engine import Engine
from .opening import open_storage
from .verify import rebuild


def main() -> None:
    told = json.loads(sys.stdin.readline())
    sys.path.insert(0, "")
    for module in told["imports"]:
        importlib.import_module(module)
    storage: Storage = open_storage(told["url"], create=False)
    engine = Engine(storage)
    try:
        for line in sys.stdin:
            agent, seq = json.loads(line)
            for answer in rebuild(engine, told["user"], [(agent, seq)]):
                print(json.dumps(list(answer)), flush=True)
    finally:
        engine.close()


if __name__ == "__main__":
    main()
