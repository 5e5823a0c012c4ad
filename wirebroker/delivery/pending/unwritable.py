"""Topics that could not be written; their entries wait, so that those of others go on."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection

_FIRST_PAUSE_MS: Final = 5_000
# Each failure takes about two timeouts of transactions, in which nothing else is delivered.
_LONGEST_PAUSE_MS: Final = 300_000


class _Pause(NamedTuple):
    length_ms: int
    until_ms: int


class UnwritableTopics:
    """The pause of each topic, which doubles with each failure after the last commit."""

    def __init__(self) -> None:
        self._pauses: dict[str, _Pause] = {}

    def note(self, topics: Collection[str], now_ms: int) -> None:
        """Note topics that could not be written."""
        for topic in topics:
            last = self._pauses.get(topic)
            if last is None or now_ms - last.until_ms > _LONGEST_PAUSE_MS:
                length_ms = _FIRST_PAUSE_MS
            else:
                length_ms = 2 * last.length_ms
            length_ms = min(length_ms, _LONGEST_PAUSE_MS)
            self._pauses[topic] = _Pause(length_ms, now_ms + length_ms)

    def until_ms(self, topic: str, now_ms: int) -> int | None:
        """Return when a topic may be written again; None if it may."""
        pause = self._pauses.get(topic)
        return None if pause is None or pause.until_ms <= now_ms else pause.until_ms

    def written(self, topics: Collection[str]) -> None:
        """Forget topics that were written."""
        for topic in topics:
            self._pauses.pop(topic, None)

    def __bool__(self) -> bool:
        """Return whether there are some."""
        return bool(self._pauses)
