"""Errors of the data source."""

from __future__ import annotations


class OptionError(ValueError):
    """An option is invalid."""


class RecreatedTopicError(Exception):
    """A topic was deleted and created again, so old offsets mean nothing."""


class DataLossError(Exception):
    """Records to read were removed by retention, deletion or truncation."""


def recreated(topic: str, old_id: str, new_id: str, advice: str) -> RecreatedTopicError:
    """Return the error for a recreated topic."""
    return RecreatedTopicError(
        f"topic {topic} was recreated: records read before had the topic id {old_id}, the topic "
        f"now has {new_id}. {advice}"
    )
