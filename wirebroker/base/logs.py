"""Log output: one readable line per event, or one JSON object per line.

    2026-11-21 10:12:33.123 WARNING wirebroker.net: closing 127.0.0.1:50312 on PLAINTEXT: ...

One of several processes is named: `INFO [worker 2] wirebroker: stopping`. Times are UTC in JSON and
local in text. Control characters are escaped, so that a peer cannot forge a line.
"""

from __future__ import annotations

import json
import logging
import sys
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, TextIO

from wirebroker.base.log_bound import LineBound

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

LogFormat = Literal["text", "json"]
LOG_LEVELS: Final = ("debug", "info", "warning", "error")
# The second has Kafka's name (authorization/audit.py).
_OWN_LOGGERS: Final = ("wirebroker", "kafka.authorizer.logger")

# C0 and C1 controls and the two Unicode line ends.
_ESCAPES: Final[Mapping[int, str]] = {
    **{code: f"\\x{code:02x}" for code in (*range(0x20), *range(0x7F, 0xA0))},
    ord("\n"): "\\n",
    ord("\r"): "\\r",
    ord("\t"): "\\t",
    0x2028: "\\u2028",
    0x2029: "\\u2029",
}

# Truncates messages, such as those with a 32 KiB client id.
_LONGEST_MESSAGE: Final = 2000


def configure_logging(
    *,
    level: str = "info",
    log_format: LogFormat = "text",
    stream: TextIO | None = None,
    process: str = "",
    redact: Callable[[str], str] = str,
) -> None:
    """Send all log output to `stream` (default: standard error); call once per process.

    `level` is for the broker's loggers; libraries log from warning on. `process` is the name of one
    of several processes. `redact` removes secrets.
    """
    assert level in LOG_LEVELS, f"no log level {level!r}"
    out = stream or sys.stderr
    handler = logging.StreamHandler(out) if level == "debug" else BoundedHandler(out)
    formatter = JsonFormatter if log_format == "json" else TextFormatter
    handler.setFormatter(formatter(process, redact))
    root = logging.getLogger()
    for old in list(root.handlers):
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(logging.WARNING)
    for name in _OWN_LOGGERS:
        logging.getLogger(name).setLevel(level.upper())


class BoundedHandler(logging.StreamHandler[TextIO]):
    """Handler that limits the lines that peers cause."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._bound = LineBound()

    def emit(self, record: logging.LogRecord) -> None:
        """Write or count a line; the handler's lock is held."""
        for line in self._bound.take(record):
            super().emit(line)

    def close(self) -> None:
        """Write the summaries of left-out lines and close."""
        for summary in self._bound.rest():
            super().emit(summary)
        super().close()


def one_line(text: str) -> str:
    """Return `text` as one line of bounded length."""
    if len(text) > _LONGEST_MESSAGE:
        text = f"{text[:_LONGEST_MESSAGE]}... ({len(text)} characters)"
    return text.translate(_ESCAPES)


class TextFormatter(logging.Formatter):
    """Lines for people."""

    def __init__(self, process: str = "", redact: Callable[[str], str] = str) -> None:
        super().__init__()
        self._process = f"[{process}] " if process else ""
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return one line, followed by the indented lines of a traceback."""
        time = datetime.fromtimestamp(record.created).astimezone()
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        milliseconds = int(record.msecs)
        line = (
            f"{stamp}.{milliseconds:03d} {record.levelname} {self._process}{record.name}: "
            f"{one_line(self._redact(record.getMessage()))}"
        )
        for traceback_line in self._traceback(record):
            line += f"\n    {traceback_line.translate(_ESCAPES)}"
        return line

    def _traceback(self, record: logging.LogRecord) -> list[str]:
        if not record.exc_info:
            return []
        return self._redact(self.formatException(record.exc_info)).splitlines()


class JsonFormatter(logging.Formatter):
    """JSON lines with times of RFC 3339."""

    def __init__(self, process: str = "", redact: Callable[[str], str] = str) -> None:
        super().__init__()
        self._process = {"process": process} if process else {}
        self._redact = redact

    def format(self, record: logging.LogRecord) -> str:
        """Return one JSON object without line ends."""
        time = datetime.fromtimestamp(record.created, tz=UTC)
        event = {
            "time": time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **self._process,
            "logger": record.name,
            "message": one_line(self._redact(record.getMessage())),
        }
        if record.exc_info:
            event["traceback"] = self._redact(self.formatException(record.exc_info))
        return json.dumps(event)
