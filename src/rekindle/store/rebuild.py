"""`python -m rekindle.store.rebuild`: restores checkpoints in a process that has nothing but rekindle.

Reads JSON lines: {"url", "user", "imports"}, then [agent, seq] each; answers why the imports failed or null, then
[agent, seq, failure or null] each.
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
    answers, sys.stdout = sys.stdout, sys.stderr  # what a user's module prints is no answer
    told = json.loads(sys.stdin.readline())
    failure = _imported(told["imports"])
    print(json.dumps(failure), file=answers, flush=True)
    if failure is not None:
        return
    storage: Storage = open_storage(told["url"], create=False)
    engine = Engine(storage)
    try:
        for line in sys.stdin:
            agent, seq = json.loads(line)
            for answer in rebuild(engine, told["user"], [(agent, seq)]):
                print(json.dumps(list(answer)), file=answers, flush=True)
    finally:
        engine.close()


def _imported(modules: list[str]) -> str | None:
    """Why one of them cannot be imported; None where all were."""
    sys.path.insert(0, "")
    for module in modules:
        try:
            importlib.import_module(module)
        except Exception as e:  # noqa: BLE001  a user's own module may raise anything; that is the answer
            return f"the module {module!r} cannot be imported: {type(e).__name__}: {e}"
    return None


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:  # of both processes; the one that asked tells of it
        sys.exit(130)
