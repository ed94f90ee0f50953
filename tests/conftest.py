"""What all tests share: the same examples in every run, new ones in torture; and a count of the crash states seen."""

import os

import pytest
from hypothesis import settings

TORTURE = os.environ.get("REKINDLE_TORTURE") == "1"
CRASH_STATES = 1_000_000 if TORTURE else 5_000
"""So many states that a power cut could leave have to be checked in a whole run."""

settings.register_profile("same", derandomize=True, deadline=None, database=None)
settings.register_profile("torture", deadline=None, database=None, print_blob=True)
settings.load_profile("torture" if TORTURE else "same")


class CrashStates:
    """Adds up what the tests report, in whichever worker they ran; too few of them fail a whole run."""

    def __init__(self, config: pytest.Config) -> None:
        some = any(config.getoption(name, None) for name in ("keyword", "collectonly", "lf", "sw"))
        self._whole = config.args_source is pytest.Config.ArgsSource.TESTPATHS and not some
        self._checked = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "teardown":
            self._checked += sum(n for name, n in report.user_properties if name == "crash_states")

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self._checked:
            terminalreporter.write_line(f"crash states: {self._checked:,} checked")

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._whole and session.testscollected and self._checked < CRASH_STATES:
            print(f"\n{self._checked:,} crash states were checked: fewer than {CRASH_STATES:,}")
            session.exitstatus = session.exitstatus or 1


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(CrashStates(config))
