"""Log lines and delays for operations that are retried until they succeed."""

from __future__ import annotations

import logging
from random import Random
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.net.client.settings import Backoff


class FailureLines:
    """Logs the first of successive failures of a kind, and the success after them."""

    __slots__ = ("_last_logged", "_level", "_logger", "_success")

    def __init__(self, logger: logging.Logger, success: str, *, level: int = logging.INFO) -> None:
        self._logger: Final = logger
        self._success: Final = success
        self._level: Final = level
        self._last_logged = ""

    def add(self, kind: str, line: str) -> None:
        """Log a failure unless the last one was of the same kind."""
        if self._last_logged != kind:
            self._last_logged = kind
            self._logger.log(self._level, line)

    def end(self) -> None:
        """Log the success if a failure was logged."""
        if self._last_logged:
            self._last_logged = ""
            self._logger.log(self._level, self._success)


class RetryPauses:
    """Increasing delays before retries; `seed` is for their jitter."""

    __slots__ = ("_backoff", "_count", "_random")

    def __init__(self, backoff: Backoff, *, seed: int) -> None:
        self._backoff: Final = backoff
        self._random: Final = Random(seed)  # noqa: S311 - jitter, no secrets
        self._count = 0

    def add(self) -> None:
        """Count a failure."""
        self._count += 1

    def reset(self) -> None:
        """Return to the first delay after a partial success."""
        self._count = min(self._count, 1)

    def end(self) -> None:
        """Reset the count after a success."""
        self._count = 0

    @property
    def next_s(self) -> float:
        """The next delay in seconds."""
        return self._backoff.delay_s(self._count, self._random)
