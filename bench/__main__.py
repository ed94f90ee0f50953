"""`python -m bench`: every figure that rekindle has to reach, measured, with its peers, on this machine."""

from __future__ import annotations

import argparse
import importlib
import sys
import tempfile
import time
import traceback
from collections.abc import Sequence
from pathlib import Path

from bench import report
from bench.measure import FULL, QUICK, Dose
from bench.report import Figure, PeerCost

SUBJECTS = ("disk", "latency", "concurrency", "reading", "collecting", "memory", "startup", "langgraph")
_HERE = Path(__file__).parent


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    figures: list[Figure] = []
    costs: list[PeerCost] = []
    failed: list[str] = []
    options.scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=options.scratch) as scratch:
        for subject in options.only or SUBJECTS:
            if not _run(subject, QUICK if options.quick else FULL, Path(scratch).resolve(), figures, costs):
                failed.append(subject)
    text = _page(figures, costs, failed, quick=options.quick)
    print(text)
    whole = not (options.only or options.quick or failed)
    out: Path | None = options.out or (_HERE / "RESULTS.md" if whole else None)
    if out is not None:
        out.write_text(text, encoding="utf-8")
    return 1 if failed else 0


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m bench", description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SUBJECTS, metavar="NAME", help=f"of {', '.join(SUBJECTS)}")
    parser.add_argument("--quick", action="store_true", help="a tiny dose of everything: shows that it runs, no more")
    parser.add_argument(
        "--out", type=Path, help="where the page goes (a whole run: bench/RESULTS.md; else stdout only)"
    )
    parser.add_argument("--scratch", type=Path, default=_HERE / "out", help="a folder on the disk to measure")
    return parser.parse_args(arguments)


def _run(subject: str, dose: Dose, scratch: Path, figures: list[Figure], costs: list[PeerCost]) -> bool:
    """False, with the traceback on stderr, if it did not come to its end: the other subjects still run."""
    start = time.monotonic()
    try:
        for found in importlib.import_module(f"bench.{subject}").run(dose, scratch):
            (figures if isinstance(found, Figure) else costs).append(found)
            if isinstance(found, Figure):
                print(
                    f"{found.what}: {found.ours}, {found.ratio} -> {_said(found.reached)}",
                    file=sys.stderr,
                )
    except Exception:  # noqa: BLE001 - whatever it was, it is shown, and the exit status tells
        traceback.print_exc()
        return False
    print(f"-- {subject}: {time.monotonic() - start:.0f} s", file=sys.stderr)
    return True


def _said(reached: bool | None) -> str:
    return report.yes_no(reached).strip("*")


def _page(figures: list[Figure], costs: list[PeerCost], failed: list[str], *, quick: bool) -> str:
    judged = [figure.reached for figure in figures if figure.reached is not None]
    parts = [
        "# Results",
        "Printed by `python -m bench`; what is measured and how: bench/README.md.",
        report.environment(),
    ]
    if quick:
        parts.append("**A tiny dose (`--quick`): it shows that the bench runs; the figures say nothing.**")
    parts += [f"**{subject} failed: its traceback is in the output.**" for subject in failed]
    parts.append(f"{sum(judged)} of {len(judged)} targets reached.")
    parts.append(report.figures_table(figures))
    if costs:
        parts += ["## Peers, through the same saves", report.peers_tables(costs)]
    return "\n\n".join(parts) + "\n"


if __name__ == "__main__":
    sys.exit(main())
