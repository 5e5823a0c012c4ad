"""How many lines the log has of what peers do: as many a minute, the rest are counted.

A peer that is refused tries again, thousands of times a minute if it likes. So lines that a peer
causes say whom they are about (`about`), and of those that are alike, one sentence about one
address, sixty a minute are told. The next says that there are more; how many, and what the
last one said, stands before the first line of any kind after that minute, or at the process's end.
Addresses are cheap as well: of all that are bounded six hundred a minute are told, and whoever
comes after that is counted by sentence alone. At level debug each line is told.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INTERVAL_S: Final = 60.0
# An address and sentence; one line a second is what a person may still want to read.
_MOST_ALIKE: Final = 60
_MOST_OF_ALL: Final = 600


def about(peer: str, listener: str) -> Mapping[str, object]:
    """Return what bounds a line (its `extra`).

    Args:
        peer: Address and port.
        listener: Its name.
    """
    return {"about": f"{peer.rpartition(':')[0]} on {listener}"}


def about_topic(name: str) -> Mapping[str, object]:
    """Return what bounds a line that requests of anybody cause, about one topic."""
    return {"about": name}


@dataclass(slots=True)
class _Kind:
    """Lines that are alike: how many were told, how many were not, and the last of those."""

    about: str
    told: int = 0
    left_out: int = 0
    last: logging.LogRecord | None = None


class LineBound:
    """The lines of one process. Its clock is that of the lines, seconds since 1970."""

    __slots__ = ("_began_s", "_kinds", "_told")

    # Each kind but those of many addresses has told a line: there are about _MOST_OF_ALL at most.

    def __init__(self) -> None:
        """Begin without lines."""
        self._began_s = 0.0
        # By address, level and sentence.
        self._kinds: dict[tuple[str, int, str], _Kind] = {}
        self._told = 0

    def take(self, record: logging.LogRecord) -> Iterator[logging.LogRecord]:
        """Yield what is to be written of a line: nothing, itself, or that more are left out.

        Before it comes what is due: how many were left out of a minute that is over.
        """
        # A clock that is set back ends the minute, too.
        if self._kinds and not 0 <= record.created - self._began_s < _INTERVAL_S:
            yield from self.rest()
        whom = getattr(record, "about", None)
        if whom is None:
            yield record
            return
        if not self._kinds:
            self._began_s = record.created
        kind = self._kind(whom, record.levelno, record.msg)
        if kind.told < _MOST_ALIKE and self._told < _MOST_OF_ALL:
            kind.told += 1
            self._told += 1
            yield record
            return
        kind.left_out += 1
        kind.last = _light(record)
        if kind.left_out == 1:
            yield _saying(kind.last, f"more lines such as this, about {kind.about}, are counted: ")

    def rest(self) -> Iterator[logging.LogRecord]:
        """Yield how many lines were left out; begin a minute anew."""
        kinds, self._kinds, self._told = self._kinds, {}, 0
        for kind in kinds.values():
            if kind.last is not None and kind.left_out > 1:
                count = kind.left_out - 1  # the first was told
                yield _saying(
                    kind.last, f"{count} lines about {kind.about} were left out, the last: "
                )

    def _kind(self, whom: str, level: int, sentence: str) -> _Kind:
        kind = self._kinds.get((whom, level, sentence))
        if kind is None:
            if self._told >= _MOST_OF_ALL:
                whom = "many addresses"
            kind = self._kinds.setdefault((whom, level, sentence), _Kind(whom))
        return kind


def _light(record: logging.LogRecord) -> logging.LogRecord:
    """Return a line that keeps nothing alive: no error, whose frames have connections."""
    return logging.makeLogRecord(
        {
            "name": record.name,
            "levelno": record.levelno,
            "levelname": record.levelname,
            "msg": record.getMessage(),
            "created": record.created,
            "msecs": record.msecs,
        }
    )


def _saying(record: logging.LogRecord, what: str) -> logging.LogRecord:
    """Return a line that is said of another."""
    return logging.makeLogRecord(record.__dict__ | {"msg": what + record.getMessage()})
