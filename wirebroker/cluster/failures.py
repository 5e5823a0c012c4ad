"""Failures in a row of what is tried until it succeeds: one line, and longer and longer pauses."""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import Backoff


class Failures:
    """How often something has failed since it last succeeded, and what the log was told of it.

    Args:
        logger: Told of the first failure of each kind, and of the success after it.
        success: What it is told then.
        backoff: How long to wait before the next try.
        seed: Of the jitter of that.
        level: Of failures in the log.
    """

    __slots__ = ("_backoff", "_count", "_level", "_logger", "_random", "_success", "_told")

    def __init__(
        self,
        logger: logging.Logger,
        success: str,
        *,
        backoff: Backoff,
        seed: int,
        level: int = logging.INFO,
    ) -> None:
        self._logger: Final = logger
        self._success: Final = success
        self._backoff: Final = backoff
        self._random: Final = Random(seed)  # noqa: S311 - jitter, no secrets
        self._level: Final = level
        self._count = 0
        self._told = ""

    def add(self, kind: str, line: str) -> None:
        """Count one, and log the line unless the last one was of the same kind."""
        self._count += 1
        if self._told != kind:
            self._told = kind
            self._logger.log(self._level, line)

    def begin_anew(self) -> None:
        """Wait as after the first failure: something has succeeded, if not all."""
        self._count = min(self._count, 1)

    def end(self) -> None:
        """Count from zero again: it has succeeded."""
        self._count = 0
        if self._told:
            self._told = ""
            self._logger.log(self._level, self._success)

    @property
    def pause_s(self) -> float:
        """How long to wait before the next try."""
        return self._backoff.delay_s(self._count, self._random)
