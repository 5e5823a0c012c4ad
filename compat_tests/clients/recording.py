r"""A pytest plugin that records which clients passed the tests of which features.

    python -m pytest compat_tests spark_it --nightly -m shows \
        -p compat_tests.clients.recording --record-clients FILE

A test is marked `shows(feature)` if its parameter is the client, else `shows(feature, client)`; a
third argument describes the client's use of the feature. Results replace those in the file for the
same client and feature. With --collect-only each one has passed 0 tests.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from compat_tests.clients.versions import CLIENTS, version_of

if TYPE_CHECKING:
    from collections.abc import Iterable

    import pytest

_PROPERTY = "shows"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--record-clients", type=Path, metavar="FILE", help="where results go")


def pytest_configure(config: pytest.Config) -> None:
    """Record in the controlling process only, not in workers of pytest-xdist."""
    file = config.getoption("--record-clients")
    if file is not None:
        config.pluginmanager.register(Recorder(file, is_worker=hasattr(config, "workerinput")))


class Recorder:
    def __init__(self, file: Path, *, is_worker: bool) -> None:
        self._file = file
        self._is_worker = is_worker
        self._found: dict[str, Any] = {}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Store each test's marks; reports pass them to the controlling process."""
        for item in items:
            item.user_properties += [(_PROPERTY, mark) for mark in shown_by(item)]

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Record the collected tests if none is run."""
        if session.config.option.collectonly:
            for item in session.items:
                self._add(item.user_properties, passed=0, failed=0)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test that passed, or that failed in any stage."""
        if report.failed:
            self._add(report.user_properties, passed=0, failed=1)
        elif report.when == "call" and report.passed:
            self._add(report.user_properties, passed=1, failed=0)

    def pytest_sessionfinish(self) -> None:
        if self._is_worker:
            return
        text = self._file.read_text("utf-8") if self._file.exists() else "{}"
        record: dict[str, Any] = json.loads(text)
        for client, recorded in self._found.items():
            features = record.get(client, {}).get("features", {}) | recorded
            record[client] = {"version": version_of(client), "features": features}
        text = json.dumps(record, indent=2, sort_keys=True, ensure_ascii=False)
        self._file.write_text(text + "\n", "utf-8")

    def _add(self, properties: Iterable[tuple[str, Any]], *, passed: int, failed: int) -> None:
        for name, mark in properties:
            if name != _PROPERTY:
                continue
            feature, client, detail = mark
            empty: dict[str, Any] = {"passed": 0, "failed": 0, "details": []}
            cell = self._found.setdefault(client, {}).setdefault(feature, empty)
            cell["passed"] += passed
            cell["failed"] += failed
            if detail:
                cell["details"] = sorted({*cell["details"], detail})


def shown_by(item: pytest.Item) -> list[tuple[str, str, str]]:
    """Return feature, client and detail of each of a test's marks."""
    return [_shown(item, *mark.args) for mark in item.iter_markers("shows")]


def _shown(
    item: pytest.Item, feature: str, client: str | None = None, detail: str = ""
) -> tuple[str, str, str]:
    if client is None:
        parameters = f"{item.callspec.id}-"  # type: ignore[attr-defined]
        (client,) = (name for name in CLIENTS if parameters.startswith(f"{name}-"))
    assert client in CLIENTS, client
    return feature, client, detail
