"""Failures in a row of what is tried until it succeeds: what the log is told, how long to wait."""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import Backoff


class FailureLines:
    """What the log is told: the first failure of each kind, and the success after them.

    Args:
        logger: Told of them.
        success: What it is told of that.
        level: Of both.
    """

    __slots__ = ("_level", "_logger", "_success", "_told")

    def __init__(self, logger: logging.Logger, success: str, *, level: int = logging.INFO) -> None:
        self._logger: Final = logger
        self._success: Final = success
        self._level: Final = level
        self._told = ""

    def add(self, kind: str, line: str) -> None:
        """Log the line of a failure unless the last one was of the same kind."""
        if self._told != kind:
            self._told = kind
            self._logger.log(self._level, line)

    def end(self) -> None:
        """Log the success if a failure was told of."""
        if self._told:
            self._told = ""
            self._logger.log(self._level, self._success)


class RetryPauses:
    """How long to wait before the next try: longer and longer.

    Args:
        backoff: By how much.
        seed: Of the jitter of that.
    """

    __slots__ = ("_backoff", "_count", "_random")

    def __init__(self, backoff: Backoff, *, seed: int) -> None:
        self._backoff: Final = backoff
        self._random: Final = Random(seed)  # noqa: S311 - jitter, no secrets
        self._count = 0

    def add(self) -> None:
        """Count a failure."""
        self._count += 1

    def begin_anew(self) -> None:
        """Wait as after the first failure: something has succeeded, if not all."""
        self._count = min(self._count, 1)

    def end(self) -> None:
        """Count from zero again: it has succeeded."""
        self._count = 0

    @property
    def next_s(self) -> float:
        """How long to wait, in seconds."""
        return self._backoff.delay_s(self._count, self._random)
