"""The rules of one service: its topics, allowed targets and bounds.

A topic's dead letters go to `TOPIC.dead-letters`, as those of the pipelines do.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from wirebroker.delivery.model.header_table import HeaderError, is_topic_name

DEAD_LETTERS: Final = ".dead-letters"
INTERNAL_PREFIX: Final = "__"
# TOPIC.retry.GROUP, which only this group reads.
_RETRY_TOPIC: Final = re.compile(r"(.+?)\.retry\.(.+)")


@dataclass(frozen=True)
class DeliveryRules:
    """What the service accepts.

    Attributes:
        group: The consumer group of the service.
        deliver_topics: Input topics of scheduled records.
        retry_topics: Input topics of retried records.
        pending_topic: The internal topic.
        targets: Allowed topics; a name that ends with `*` is a prefix. None allows all.
        max_delay_ms: How far a due time may be ahead.
        max_attempts: The most attempts that a record may ask for.
    """

    group: str
    deliver_topics: tuple[str, ...]
    retry_topics: tuple[str, ...]
    pending_topic: str
    targets: tuple[str, ...] | None
    max_delay_ms: int
    max_attempts: int

    def __post_init__(self) -> None:
        """Raise ValueError for a target that can match no topic."""
        for target in self.targets or ():
            # A prefix is the beginning of a name.
            if not is_topic_name(f"{target[:-1]}x" if target.endswith("*") else target):
                raise ValueError(
                    f"wirebroker.delivery.targets: {target!r} is neither a topic name nor a prefix"
                    " with * at its end"
                )

    @property
    def input_topics(self) -> tuple[str, ...]:
        """All input topics."""
        return (*self.deliver_topics, *self.retry_topics)

    @cached_property
    def own_topics(self) -> frozenset[str]:
        """The topics of the service, which are never targets."""
        letters = map(dead_letters_of, self.input_topics)
        return frozenset((*self.input_topics, *letters, self.pending_topic))

    @property
    def named_targets(self) -> list[str]:
        """The targets without a wildcard."""
        return [topic for topic in self.targets or () if not topic.endswith("*")]

    def is_target(self, topic: str) -> bool:
        """Return whether records may be delivered to a topic."""
        if topic.startswith(INTERNAL_PREFIX) or topic in self.own_topics:
            return False
        if self.targets is None:
            return True
        return any(
            topic.startswith(allowed[:-1]) if allowed.endswith("*") else topic == allowed
            for allowed in self.targets
        )

    def check_target(self, topic: str) -> None:
        """Raise HeaderError if records may not be delivered to a topic."""
        if not self.is_target(topic):
            raise HeaderError(
                f"records are not delivered to topic {topic}: see wirebroker.delivery.targets"
            )

    def retry_dead_letters(self, retry_topic: str, input_topic: str) -> str:
        """Return the dead-letter topic of a record that was retried.

        It is the source topic's, if records may be delivered there, else the input topic's.
        """
        source, _ = source_and_group(retry_topic)
        return dead_letters_of(source if self.is_target(source) else input_topic)


def dead_letters_of(topic: str) -> str:
    """Return the name of a topic's dead-letter topic."""
    return topic + DEAD_LETTERS


def source_and_group(retry_topic: str) -> tuple[str, str | None]:
    """Return the source topic and the group of `TOPIC.retry.GROUP`, else the topic and None."""
    match = _RETRY_TOPIC.fullmatch(retry_topic)
    return (match[1], match[2]) if match else (retry_topic, None)
