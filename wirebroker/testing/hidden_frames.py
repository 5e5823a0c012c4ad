"""Removal of the kit's frames from tracebacks; `pytest --full-trace` shows them."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Final

from wirebroker.codecs.errors import KafkaError
from wirebroker.config import ConfigError, StartError

if TYPE_CHECKING:
    from collections.abc import Iterator

# Raised by the kit on purpose. Other errors are its bugs and keep their tracebacks.
_REPORTED: Final = (
    *(AssertionError, ConnectionError, RuntimeError, TimeoutError, TypeError, ValueError),
    *(KafkaError, ConfigError, StartError),
)
_OURS: Final = "wirebroker."
_KIT: Final = "wirebroker.testing."


def hide_frames(error: BaseException) -> None:
    """Cut the tracebacks of an error and its causes where the kit begins."""
    visited: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in visited:
        visited.add(id(current))
        if isinstance(current, _REPORTED):
            _cut(current)
        current = current.__cause__ or current.__context__


def _cut(error: BaseException) -> None:
    entries = list(_entries(error.__traceback__))
    kit = next((index for index, entry in enumerate(entries) if _is_of(entry, _KIT)), 0)
    if not kit:
        return
    shortened: TracebackType | None = None
    for entry in reversed(entries[:kit]):
        shortened = TracebackType(shortened, entry.tb_frame, entry.tb_lasti, entry.tb_lineno)
    error.__traceback__ = shortened
    cause = error.__cause__ or error.__context__
    if cause is not None and _is_of(cause.__traceback__, _OURS):
        error.__cause__ = None  # this also suppresses the context


def _entries(traceback: TracebackType | None) -> Iterator[TracebackType]:
    while traceback is not None:
        yield traceback
        traceback = traceback.tb_next


def _is_of(traceback: TracebackType | None, package: str) -> bool:
    name = "" if traceback is None else traceback.tb_frame.f_globals.get("__name__", "")
    return str(name).startswith(package)
