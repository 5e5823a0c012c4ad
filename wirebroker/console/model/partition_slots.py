"""The slots of partitions in samples.

A topic keeps its slots as long as it has the same id and number of partitions. Slots of deleted
topics are not reused, so that samples never mix two topics; when most are unused, `is_sparse`.
"""

from __future__ import annotations

from bisect import bisect_right
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.topics.leaders import TopicPartition

if TYPE_CHECKING:
    from collections.abc import Collection

_SPARE: Final = 10_000


class TopicSlots(NamedTuple):
    """The neighboring slots of a topic."""

    topic_id: bytes
    first: int
    size: int


class SlotTable:
    """The slots of all topics.

    Attributes:
        size: The number of slots that were ever used.
    """

    __slots__ = ("_firsts", "_names", "size", "topics")

    def __init__(self) -> None:
        self.topics: dict[str, TopicSlots] = {}
        self.size = 0
        # In the order of slots; an entry stays if its topic is deleted.
        self._firsts: list[int] = []
        self._names: list[str] = []

    def take(self, name: str, topic_id: bytes, count: int) -> TopicSlots:
        """Return a topic's slots, new ones for a new or changed topic."""
        slots = self.topics.get(name)
        if slots is not None and slots.topic_id == topic_id and slots.size == count:
            return slots
        slots = self.topics[name] = TopicSlots(topic_id, self.size, count)
        self._firsts.append(self.size)
        self._names.append(name)
        self.size += count
        return slots

    def retain(self, names: Collection[str]) -> None:
        """Forget the topics with other names."""
        for name in self.topics.keys() - set(names):
            del self.topics[name]

    @property
    def is_sparse(self) -> bool:
        """Whether most slots belong to deleted topics."""
        return self.size > _SPARE + 2 * sum(slots.size for slots in self.topics.values())

    def slot_of(self, topic: str, partition: int) -> int | None:
        """Return the slot of a partition, or None."""
        slots = self.topics.get(topic)
        if slots is None or not 0 <= partition < slots.size:
            return None
        return slots.first + partition

    def place_of(self, slot: int) -> TopicPartition | None:
        """Return the partition with a slot, or None if its topic is deleted."""
        index = bisect_right(self._firsts, slot) - 1
        if index < 0:
            return None
        name = self._names[index]
        slots = self.topics.get(name)
        if slots is None or slots.first != self._firsts[index]:
            return None
        return TopicPartition(name, slot - slots.first)
