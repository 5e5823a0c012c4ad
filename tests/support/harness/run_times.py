"""The duration of the tests: printed, saved for the next run, and used to order the units."""

from __future__ import annotations

import time
from collections import defaultdict
from heapq import nlargest
from operator import itemgetter
from typing import Any

import pytest

# Duration of `make test` on two idle cores, and of `make test-all` with the other steps of .ci/run
# and the installation of tools.
QUICK_MINUTES, LONG_MINUTES = 10, 24

_UNITS = "wirebroker/unit-seconds"
_RUNS = "wirebroker/run-seconds"
# The exit status of the last run; .ci/run reads it.
_ENDED = "wirebroker/ended"
_SLOWEST_FILES = 20
# Share of a unit's earlier duration that is kept if it took less now: it may have run in part.
_BELIEVED = 0.8


class RunTimes:
    """A pytest plugin for the main process.

    Args:
        config: The run's; its cache stores the durations, if it has one.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._began = time.monotonic()
        self._units: dict[str, float] = {}
        self._files: defaultdict[str, float] = defaultdict(float)

    def pytest_report_header(self) -> str | None:
        """Print the expected duration, from the last run of the same command if possible."""
        took = self._noted(_RUNS).get(self._command)
        if took is not None:
            return f"the last run of this took {took // 60:.0f} min {took % 60:.0f} s"
        if not self._is_of_everything:
            return None
        minutes = LONG_MINUTES if self._config.option.long else QUICK_MINUTES
        return f"this takes about {minutes} minutes on two idle cores"

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_make_scheduler(self, config: pytest.Config, log: Any) -> Any:
        """Use LongestFirst unless another distribution is chosen."""
        if config.option.dist != "load":
            return None
        from tests.support.harness.scheduling import LongestFirst

        return LongestFirst(config, log, self._noted(_UNITS))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        from tests.support.harness.scheduling import unit_of

        unit = unit_of(report.nodeid)
        self._units[unit] = self._units.get(unit, 0.0) + report.duration
        self._files[report.nodeid.partition("::")[0]] += report.duration

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._is_of_everything:
            return
        slowest = nlargest(_SLOWEST_FILES, self._files.items(), key=itemgetter(1))
        terminalreporter.section(f"the {len(slowest)} slowest files")
        for name, seconds in slowest:
            terminalreporter.line(f"{seconds:7.1f} s  {name}")

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Save the durations; the total only if the run was complete."""
        cache: pytest.Cache | None = getattr(self._config, "cache", None)
        if cache is None:
            return
        cache.set(_ENDED, int(exitstatus))
        earlier = self._noted(_UNITS)
        units = {
            name: max(took, _BELIEVED * earlier.get(name, 0)) for name, took in self._units.items()
        }
        cache.set(_UNITS, {**earlier, **units})
        if exitstatus == pytest.ExitCode.OK:
            runs = {self._command: time.monotonic() - self._began}
            cache.set(_RUNS, {**self._noted(_RUNS), **runs})

    @property
    def _is_of_everything(self) -> bool:
        of_paths = self._config.args_source is pytest.Config.ArgsSource.TESTPATHS
        return of_paths and not self._config.option.keyword

    @property
    def _command(self) -> str:
        return " ".join(map(str, self._config.invocation_params.args))

    def _noted(self, key: str) -> dict[str, float]:
        cache: pytest.Cache | None = getattr(self._config, "cache", None)
        return {} if cache is None else cache.get(key, {})
