"""A real graph, run by LangGraph itself with its own saver and with ours, turn by turn."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from bench.measure import Dose
from bench.report import Figure, PeerCost


def run(dose: Dose, scratch: Path) -> Iterator[Figure | PeerCost]:
    if importlib.util.find_spec("langgraph") is None:
        yield Figure("langgraph", "-", "-", "not run", "langgraph not installed", "-", "-", None)
        return
    from bench.langgraph import subject  # only now: it imports langgraph

    yield from subject.run(dose, scratch)
