"""`Deduplicator`: which messages were processed before."""

from __future__ import annotations

import logging
import reprlib
import uuid
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.base.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from wirebroker.base.clock import Clock

logger = logging.getLogger(__name__)

MESSAGE_ID: Final = "message-id"
_WEEK_S: Final = 7 * 86_400.0
# Marks between two trims. The first mark trims as well: a consumer may often restart.
_TRIMMED_EVERY: Final = 1_000
# The column's width in DatabaseStore.
_LONGEST_ID: Final = 512


class IdStore(Protocol):
    """A store of ids."""

    def begin(self, message: str, now_ms: int) -> bool:
        """Mark an id; return False if it is marked. The mark counts from `commit` on."""
        ...

    def commit(self) -> None:
        """Make the mark durable."""
        ...

    def rollback(self) -> None:
        """Undo the mark."""
        ...

    def trim(self, before_ms: int, most: int) -> None:
        """Delete marks before a time, and the oldest ones beyond a number; commits."""
        ...


class Deduplicator:
    """Which messages were processed.

    Attributes:
        duplicate_count: Messages that were found to be duplicates.
    """

    def __init__(
        self,
        store: IdStore,
        *,
        id_of: str | Callable[[Any], str | bytes | None] = MESSAGE_ID,
        window_s: float = _WEEK_S,
        most: int = 10_000_000,
        clock: Clock | None = None,
    ) -> None:
        """Use a store.

        Args:
            store: Where the ids of processed messages are.
            id_of: The header with a message's id, or a function of the record.
            window_s: How long an id is remembered, in seconds.
            most: How many ids are remembered.
            clock: The time; None for the machine's.

        Raises:
            ValueError: A bound is not positive.
        """
        if window_s <= 0 or most <= 0:
            raise ValueError("window_s and most must be positive")
        self._store = store
        self._id_of = id_of
        self._window_ms = round(window_s * 1000)
        self._most = most
        self._clock = clock or SystemClock()
        self._marks = 0
        self.duplicate_count = 0

    @contextmanager
    def once(self, record: Any) -> Generator[bool]:
        """Yield whether a record is new; mark it if the block ends without an exception.

        With a database, the block's changes on the store's connection are committed together with
        the mark, and rolled back together after an exception.

        Raises:
            ValueError: The record has no id, or a longer one than a store can hold.
            TypeError: `id_of` returned neither str, bytes nor None.
        """
        message = self._identify(record)
        now_ms = self._clock.now_ms()
        if not self._store.begin(message, now_ms):
            self.duplicate_count += 1
            yield False
            return
        try:
            yield True
        except BaseException:
            self._store.rollback()
            raise
        self._store.commit()
        self._marks += 1
        if self._marks % _TRIMMED_EVERY == 1:
            self._trim_after_commit()

    def _trim_after_commit(self) -> None:
        """Trim; an error must not make the committed message look failed."""
        try:
            self.trim()
        except Exception as error:  # noqa: BLE001 - each driver has its own
            logger.warning(
                "cannot delete old ids: %s; the next attempt is after %d messages",
                *(error, _TRIMMED_EVERY),
            )

    def trim(self) -> None:
        """Forget ids beyond the window; `once` also does so from time to time."""
        self._store.trim(self._clock.now_ms() - self._window_ms, self._most)

    def _identify(self, record: Any) -> str:
        if isinstance(self._id_of, str):
            headers: Any = record.headers
            if callable(headers):  # in confluent-kafka
                headers = headers()
            found = [value for name, value in headers or () if name == self._id_of]
            message: Any = found[-1] if found else None
        else:
            message = self._id_of(record)
            if message is not None and not isinstance(message, str | bytes):
                name = getattr(self._id_of, "__qualname__", repr(self._id_of))
                shown = reprlib.repr(message)
                raise TypeError(f"{name} returned {shown}: an id must be str or bytes")
        if not message:
            raise ValueError(
                "a record has no id: set the header message-id (message_id()), or give id_of"
            )
        text = message if isinstance(message, str) else message.decode("utf-8", "backslashreplace")
        if len(text) > _LONGEST_ID:
            raise ValueError(f"an id has at most {_LONGEST_ID} characters, this has {len(text)}")
        return text


def message_id(identity: str | None = None) -> tuple[str, bytes]:
    """Return the header with a message's id: the given one, else a new one.

    A producer that sends a message again must use the same id.
    """
    return MESSAGE_ID, (identity or uuid.uuid4().hex).encode()
