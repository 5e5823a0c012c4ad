"""Fixtures for the tests of storage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.unit.storage.log_kit import NOW, commit_all, make_log
from wirebroker.storage.recovery.log_recovery import load_log

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from wirebroker.storage.log.log import Log


@pytest.fixture
def open_log(tmp_path: Path) -> Iterator[Callable[..., Log]]:
    """Return a function that opens the log in the test's directory with the given settings."""
    logs: list[Log] = []

    def open_it(
        *,
        recovery_point: int = 0,
        clean: bool = False,
        log_start_offset: int = 0,
        **settings: Any,
    ) -> Log:
        log = make_log(tmp_path, **settings)
        load_log(
            log,
            recovery_point=recovery_point,
            clean=clean,
            now_ms=NOW,
            log_start_offset=log_start_offset,
        )
        commit_all(log)
        logs.append(log)
        return log

    yield open_it
    for log in logs:
        log.close(clean=False)
