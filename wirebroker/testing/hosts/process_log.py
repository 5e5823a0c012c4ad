"""What brokers in this process have logged last, for the reports of tests that fail.

While one of them runs, our loggers hand INFO and above to this handler, which keeps the last lines.
The program's own handlers (pytest's caplog among them) get what they would have got without it:
what reaches the level that the program has set, mostly WARNING. So a test that asserts that nothing
was logged is not disturbed.
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
# INFO, but not the one that a program may set meanwhile.
_LEVEL: Final = logging.INFO - 1
_BELOW_EVERY_HANDLER: Final = -1


class ProcessLog(logging.Handler):
    """The log of all brokers in this process; there is one, `PROCESS_LOG`.

    Attributes:
        count: How many lines there have been.
    """

    def __init__(self) -> None:
        super().__init__()
        self.setFormatter(TextFormatter())
        self.count = 0
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)
        self._users = 0
        self._logger = logging.getLogger("wirebroker")
        self._level_before = logging.NOTSET

    def last(self, most: int, *, since: int) -> list[str]:
        """Return the last lines, in order.

        Args:
            most: So many at most.
            since: Only lines that came when `count` was as high already.
        """
        with self._locked():
            wanted = max(0, min(self.count - since, most, len(self._lines)))
            return list(self._lines)[len(self._lines) - wanted :]

    def open(self) -> None:
        """Listen, for one more broker."""
        with self._locked():
            self._users += 1
            if self._users == 1:
                self._level_before = self._logger.level
                self._logger.setLevel(_LEVEL)
                self._logger.addHandler(self)

    def stop_listening(self) -> None:
        """Listen for one broker less; with the last, logging is as it was."""
        with self._locked():
            self._users -= 1
            if self._users == 0:
                self._logger.removeHandler(self)
                if self._logger.level == _LEVEL:
                    self._logger.setLevel(self._level_before)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep a line, and hide it from the handlers behind if the program wouldn't have got it."""
        self._lines.append(self.format(record))
        self.count += 1
        root = logging.getLogger()
        level = self._logger.level
        if level == _LEVEL:
            level = self._level_before or root.getEffectiveLevel()
        if record.levelno < level:
            # Handlers compare it one by one, so those of the root logger pass it over.
            record.levelno = _BELOW_EVERY_HANDLER
        elif not root.handlers and logging.lastResort is not None:
            # What Python does for a program without handlers; with us it has one.
            logging.lastResort.handle(record)

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        self.acquire()
        try:
            yield
        finally:
            self.release()


PROCESS_LOG: Final = ProcessLog()
