"""Limit for the log lines that peers cause; lines beyond it are only counted.

Sixty lines a minute with the same message and subject (`about`) are written. The next one announces
that more are counted; a later line gives their number and the last text. Peers may have many
addresses, so six hundred limited lines a minute are written in total; beyond that, lines are
counted by message alone. Level debug has no limit.
"""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_INTERVAL_S: Final = 60.0
# For one message and subject.
_MOST_ALIKE: Final = 60
_MOST_OF_ALL: Final = 600
# Letters of an id that a client chooses.
_LONGEST_SUBJECT: Final = 100


def about(peer: str, listener: str) -> Mapping[str, object]:
    """Return the `extra` that limits a log line about a peer's host and port."""
    return {"about": f"{peer.rpartition(':')[0]} on {listener}"}


def about_topic(name: str) -> Mapping[str, object]:
    """Return the `extra` for a line about a topic, which any client may cause."""
    return {"about": name}


def about_group(group_id: str) -> Mapping[str, object]:
    """Return the `extra` for a line about a group, which its members may cause."""
    return {"about": f"group {group_id[:_LONGEST_SUBJECT]}"}


def about_transaction(transactional_id: str) -> Mapping[str, object]:
    """Return the `extra` for a line about a transactional id, whose client may cause it."""
    return {"about": f"transactional id {transactional_id[:_LONGEST_SUBJECT]}"}


def about_quorum() -> Mapping[str, object]:
    """Return the `extra` for a line about messages of the metadata quorum's replicas."""
    return {"about": "the metadata quorum"}


def about_client_metrics(name: str) -> Mapping[str, object]:
    """Return the `extra` for a line about a subscription of client metrics."""
    return {"about": f"client metrics {name[:_LONGEST_SUBJECT]}"}


@dataclass(slots=True)
class _Kind:
    about: str
    told: int = 0
    left_out: int = 0
    last: logging.LogRecord | None = None


class LineBound:
    """The limited lines of one process, on the lines' own clock."""

    __slots__ = ("_began_s", "_kinds", "_written_count")

    # Each kind but "many addresses" has written a line, so there are about _MOST_OF_ALL.

    def __init__(self) -> None:
        self._began_s = 0.0
        self._kinds: dict[tuple[str, int, str], _Kind] = {}
        self._written_count = 0

    def take(self, record: logging.LogRecord) -> Iterator[logging.LogRecord]:
        """Yield summaries of an elapsed minute, then the line or a notice."""
        # Setting the clock back ends the minute, too.
        if self._kinds and not 0 <= record.created - self._began_s < _INTERVAL_S:
            yield from self.rest()
        subject = getattr(record, "about", None)
        if subject is None:
            yield record
            return
        if not self._kinds:
            self._began_s = record.created
        kind = self._kind(subject, record.levelno, record.msg)
        if kind.told < _MOST_ALIKE and self._written_count < _MOST_OF_ALL:
            kind.told += 1
            self._written_count += 1
            yield record
            return
        kind.left_out += 1
        kind.last = _light(record)
        if kind.left_out == 1:
            yield _with_prefix(
                kind.last, f"more lines like this about {kind.about} are only counted: "
            )

    def rest(self) -> Iterator[logging.LogRecord]:
        """Yield summaries of the left-out lines and start a new minute."""
        kinds, self._kinds, self._written_count = self._kinds, {}, 0
        for kind in kinds.values():
            if kind.last is not None and kind.left_out > 1:
                count = kind.left_out - 1  # the first was written
                yield _with_prefix(
                    kind.last, f"{count} lines about {kind.about} were suppressed, the last: "
                )

    def _kind(self, subject: str, level: int, sentence: str) -> _Kind:
        kind = self._kinds.get((subject, level, sentence))
        if kind is None:
            if self._written_count >= _MOST_OF_ALL:
                subject = "many addresses"
            kind = self._kinds.setdefault((subject, level, sentence), _Kind(subject))
        return kind


def _light(record: logging.LogRecord) -> logging.LogRecord:
    """Return a copy without the exception, whose frames hold connections."""
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


def _with_prefix(record: logging.LogRecord, prefix: str) -> logging.LogRecord:
    return logging.makeLogRecord(record.__dict__ | {"msg": prefix + record.getMessage()})
