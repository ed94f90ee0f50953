"""The demo's edge: its option, the terminal, and an end that leaves nothing behind."""

from __future__ import annotations

import argparse
import os
import sys

from .screen import Screen
from .story import tell


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m rekindle.demo", description="rekindle at work, in half a minute.")
    parser.add_argument("--fast", action="store_true", help="without the pauses that make it readable")
    fast = parser.parse_args().fast
    color = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        return tell(Screen(fast=fast, color=color), fast=fast)
    except KeyboardInterrupt:
        print("\ninterrupted; the demo's folder is removed", file=sys.stderr)
        return 130


if __name__ == "__main__":
    sys.exit(main())
