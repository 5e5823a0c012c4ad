"""Check that the committed offsets of groups never decrease."""

from __future__ import annotations

from typing import TYPE_CHECKING

from confluent_kafka import Consumer, KafkaException, TopicPartition

from tests.support.tools.background import InBackground

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_NONE = -1
_TIMEOUT_S = 5.0
_PAUSE_S = 0.2


class CommittedOffsets(InBackground):
    """A thread that fetches offsets repeatedly, from any coordinator.

    Args:
        bootstrap: Of the cluster.
        sources: The topic that each group reads.
        partitions: Of each topic.
        has_zombies: Whether responses may be stale: those don't count.

    Attributes:
        looks: Number of responses with all partitions of a group.
        last: (group, partition) -> last fetched offset.
    """

    def __init__(
        self,
        bootstrap: str,
        sources: Mapping[str, str],
        partitions: int,
        *,
        has_zombies: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.looks = 0
        self._has_zombies = has_zombies
        self.last: dict[tuple[str, int], int] = {}
        self._backward: list[str] = []
        self._wanted = {
            group: [TopicPartition(source, partition) for partition in range(partitions)]
            for group, source in sources.items()
        }
        self._consumers = {
            group: Consumer({"bootstrap.servers": bootstrap, "group.id": group, "log_level": 2})
            for group in sources
        }

    def _finish(self) -> None:
        for consumer in self._consumers.values():
            consumer.close()

    def check(self) -> None:
        assert not self._backward, self._backward
        assert self.looks

    def _run(self) -> None:
        while not self._is_over.wait(_PAUSE_S):
            for group, consumer in self._consumers.items():
                self._look(group, consumer)

    def _look(self, group: str, consumer: Consumer) -> None:
        if self._has_zombies():
            return
        try:
            committed = consumer.committed(self._wanted[group], timeout=_TIMEOUT_S)
        except KafkaException:
            return  # the coordinator is unavailable, or a transaction is open
        if (
            any(topic_partition.error is not None for topic_partition in committed)
            or self._has_zombies()
        ):
            return
        self.looks += 1
        for topic_partition in committed:
            key = (group, topic_partition.partition)
            offset = max(topic_partition.offset, _NONE)  # a negative offset means none
            before = self.last.get(key, _NONE)
            if offset < before:
                self._backward.append(f"{key}: {offset} after {before}")
            self.last[key] = offset
