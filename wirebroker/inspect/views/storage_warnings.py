"""Capture of storage code's warnings, for a report."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator


class _Collector(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.messages: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.messages.append(record.getMessage())


@contextmanager
def storage_warnings() -> Generator[list[str]]:
    """Collect warnings instead of logging."""
    collector = _Collector()
    logger = logging.getLogger("wirebroker")
    before = logger.propagate, logger.handlers
    logger.propagate, logger.handlers = False, [collector]
    try:
        yield collector.messages
    finally:
        logger.propagate, logger.handlers = before
