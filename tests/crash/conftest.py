"""What every crash test needs."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def _only_errors(caplog: pytest.LogCaptureFixture) -> None:
    # Each recovery warns of what it cuts: thousands of lines that nobody reads.
    caplog.set_level(logging.ERROR, logger="wirebroker")
