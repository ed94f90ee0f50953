"""The command `rekindle`. Nothing loads here: click loads to read a line, a command's module when it is used."""

from __future__ import annotations

import os
import sys


def main() -> None:
    """The program: `rekindle`, `python -m rekindle`."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed by whoever started this; and no store may get their numbers
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115 - as long as the program
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    if "_REKINDLE_COMPLETE" in os.environ:
        from .completing import complete

        sys.exit(complete(os.environ["_REKINDLE_COMPLETE"]))
    if sys.argv[1:] in (["--help"], ["-h"]):
        from .table import columns, help_text

        try:
            print(help_text(columns()), flush=True)
        except BrokenPipeError:
            os._exit(141)  # the usual way out would try to write once more
        return
    from .app import root

    root.main()
