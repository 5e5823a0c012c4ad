"""Logs of brokers that are cut and started thousands of times: errors alone."""

from __future__ import annotations

import logging

import pytest


@pytest.fixture(autouse=True)
def only_errors(caplog: pytest.LogCaptureFixture) -> None:
    """Leave out warnings of what each recovery cuts, which nobody reads."""
    caplog.set_level(logging.ERROR, logger="wirebroker")
