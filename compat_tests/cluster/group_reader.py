"""A consumer group's member that reads continuously, in a thread."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from confluent_kafka import Consumer, TopicPartition

from tests.support.tools.background import InBackground

if TYPE_CHECKING:
    from collections.abc import Sequence

    from compat_tests.cluster.nodes import Cluster

GROUP = "reader"


class Reader(InBackground):
    """A consumer of topics that keeps its records in order.

    Attributes:
        values: What it has read.
        owned: The partitions that it has now.
    """

    def __init__(self, cluster: Cluster, *topics: str, **config: Any) -> None:
        super().__init__()
        self.values: list[str] = []
        self.owned: set[tuple[str, int]] = set()
        self._consumer = Consumer(
            {
                "bootstrap.servers": cluster.bootstrap,
                "group.id": GROUP,
                "auto.offset.reset": "earliest",
                "topic.metadata.refresh.interval.ms": 1000,
                **{name.replace("_", "."): value for name, value in config.items()},
            }
        )
        self._consumer.subscribe(list(topics), on_assign=self._on_assign, on_revoke=self._on_revoke)

    def _on_assign(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        del consumer
        self.owned |= {(partition.topic, partition.partition) for partition in partitions}

    def _on_revoke(self, consumer: Consumer, partitions: Sequence[TopicPartition]) -> None:
        del consumer
        self.owned -= {(partition.topic, partition.partition) for partition in partitions}

    def _finish(self) -> None:
        self._consumer.close()

    def _run(self) -> None:
        while not self._is_over.is_set():
            message = self._consumer.poll(0.2)
            if message is not None and message.error() is None:
                self.values.append((message.value() or b"").decode())
