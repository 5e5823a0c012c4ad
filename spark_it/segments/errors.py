"""What the data source tells its user."""

from __future__ import annotations


class OptionError(ValueError):
    """An option that cannot be followed, with what would do."""


class RecreatedTopicError(Exception):
    """A topic was deleted and created again: offsets in the old one mean nothing in the new one."""


class DataLossError(Exception):
    """Records that were to be read are gone: removed by retention or deletion, or cut off.

    With `failOnDataLoss=false` reading goes on behind them.
    """


def recreated(topic: str, old_id: str, new_id: str, advice: str) -> RecreatedTopicError:
    """Return the error of a topic that was recreated.

    Args:
        topic: Its name.
        old_id: The topic id that was read before.
        new_id: The topic id now.
        advice: What to do.
    """
    return RecreatedTopicError(
        f"topic {topic} was recreated: records read before had the topic id {old_id}, the topic "
        f"now has {new_id}. {advice}"
    )
