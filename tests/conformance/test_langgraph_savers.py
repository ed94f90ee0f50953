"""LangGraph's own conformance suite, whole, on every storage; and ours for adapters."""

import asyncio
import os
from pathlib import Path

import pytest
from langgraph.checkpoint.conformance import checkpointer_test, validate
from langgraph.checkpoint.conformance.capabilities import Capability

from rekindle.adapters.langgraph import RekindleSaver
from rekindle.testing.adapter import AdapterConformance

HERE = Path(__file__).parent
THEIRS = 81


@pytest.mark.parametrize("url", ["memory://", "sqlite:///{}/threads.db", "file://{}/threads"])
def test_their_suite_passes_whole(url: str, tmp_path: Path) -> None:
    made = iter(range(100))

    @checkpointer_test(name=url)
    async def saver():  # type: ignore[no-untyped-def]
        folder = tmp_path / str(next(made))
        folder.mkdir()
        async with RekindleSaver.from_conn_string(url.format(folder)) as one:
            yield one

    report = asyncio.run(validate(saver))
    report.print_report()
    assert [failure for result in report.results.values() for failure in result.failures] == []
    assert set(report.results) == {capability.value for capability in Capability}
    assert all(result.detected and result.passed for result in report.results.values())
    assert sum(result.tests_passed for result in report.results.values()) == THEIRS


class TestAGraph(AdapterConformance):
    program = HERE / "langgraph_agent.py"
    warm = hasattr(os, "fork")


class TestAGraphAwaited(AdapterConformance):
    program = HERE / "langgraph_async_agent.py"
    warm = hasattr(os, "fork")
