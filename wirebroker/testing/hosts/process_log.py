"""The last log lines of brokers in this process.

While a broker runs, this handler gets INFO and above; the program's own handlers (such as pytest's
caplog) still get only what the program's level allows.
"""

from __future__ import annotations

import contextlib
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from wirebroker.base.logs import TextFormatter

if TYPE_CHECKING:
    from collections.abc import Generator

_MOST_LINES: Final = 1000
# INFO, but not a level that a program sets.
_LEVEL: Final = logging.INFO - 1
_BELOW_EVERY_HANDLER: Final = -1


class ProcessLog(logging.Handler):
    """The log of all brokers in this process; `count` is the number of lines so far."""

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(TextFormatter())
        self.count = 0
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._users = 0
        self._logger = logging.getLogger("wirebroker")
        self._level_before = logging.NOTSET

    def last(self, most: int, *, since: int) -> list[str]:
        """Return at most `most` last lines after a value of `count`."""
        with self._locked():
            count = max(0, min(self.count - since, most, len(self._lines)))
            return list(self._lines)[len(self._lines) - count :]

    def open(self) -> None:
        """Listen for one more broker."""
        with self._locked():
            self._users += 1
            if self._users == 1:
                self._level_before = self._logger.level
                self._logger.setLevel(_LEVEL)
                self._logger.addHandler(self)

    def stop_listening(self) -> None:
        """Listen for one broker less; finally restore the logger."""
        with self._locked():
            self._users -= 1
            if self._users == 0:
                self._logger.removeHandler(self)
                if self._logger.level == _LEVEL:
                    self._logger.setLevel(self._level_before)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line; hide it from later handlers if the program's level does."""
        self._lines.append(self.format(record))
        self.count += 1
        root = logging.getLogger()
        level = self._logger.level
        if level == _LEVEL:
            level = self._level_before or root.getEffectiveLevel()
        if record.levelno < level:
            record.levelno = _BELOW_EVERY_HANDLER
        elif not root.handlers and logging.lastResort is not None:
            # As Python does without this handler.
            logging.lastResort.handle(record)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()


PROCESS_LOG: Final = ProcessLog()
