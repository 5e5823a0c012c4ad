"""A log level for tests that truncate logs and restart brokers thousands of times."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def only_errors(caplog: pytest.LogCaptureFixture) -> None:
    """Suppress the warnings of log recovery."""
    caplog.set_level(logging.ERROR, logger="wirebroker")
