"""A load on the metadata: topics are created, altered and deleted; keeps acknowledged changes.

An operation whose result is unknown (a timeout, a lost connection) may have happened or not; its
topic is left alone then.
"""

from __future__ import annotations

import itertools
import random
from typing import TYPE_CHECKING, Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)

from tests.support.tools.background import InBackground
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Sequence

_TIMEOUT_S: Final = 10.0
_WAIT_S: Final = 90.0
_CONFIG: Final = "retention.ms"
_MOST_TOPICS: Final = 30


class MetadataLoad(InBackground):
    """Changes of topics, one at a time.

    Args:
        bootstrap: The brokers' addresses.
        replicas: The brokers that hold each partition.
        seed: Chooses the changes.

    Attributes:
        topics: Acknowledged topics, with their partition counts and retention times.
        deleted: Topics whose deletion is acknowledged.
        count: Acknowledged changes.
        unknown: Changes without a result.
    """

    def __init__(self, bootstrap: str, replicas: Sequence[int], *, seed: int) -> None:
        super().__init__()
        self.topics: dict[str, tuple[int, str | None]] = {}
        self.deleted: set[str] = set()
        self.count = 0
        self.unknown: list[str] = []
        self._bootstrap = bootstrap
        self._replicas = list(replicas)
        self._random = random.Random(seed)
        self._names = (f"meta-{number}" for number in itertools.count())
        self._admin = AdminClient({"bootstrap.servers": bootstrap})

    def go_on(self, additional: int = 5) -> None:
        """Wait for more acknowledged changes."""
        target = self.count + additional
        eventually(lambda: self.count >= target or self._is_over.is_set(), timeout_s=_WAIT_S)

    def _run(self) -> None:
        while not self._is_over.is_set():
            changes = [self._create, self._create, self._alter, self._grow, self._delete]
            change = self._create if len(self.topics) < 3 else self._random.choice(changes)
            if change == self._create and len(self.topics) >= _MOST_TOPICS:
                change = self._delete
            name = next(self._names) if change == self._create else self._some_topic()
            try:
                change(name)
                self.count += 1
            except KafkaException as error:
                self.unknown.append(f"{change.__name__} {name}: {error}")
                self.topics.pop(name, None)

    def _finish(self) -> None:
        assert self.count, self.unknown

    def _some_topic(self) -> str:
        return self._random.choice(sorted(self.topics))

    def _create(self, name: str) -> None:
        new = NewTopic(name, 1, replica_assignment=[self._replicas])
        self._admin.create_topics([new], request_timeout=_TIMEOUT_S)[name].result(_TIMEOUT_S * 2)
        self.topics[name] = (1, None)

    def _alter(self, name: str) -> None:
        value = str(self._random.randint(1_000_000, 9_000_000))
        entry = ConfigEntry(_CONFIG, value, incremental_operation=AlterConfigOpType.SET)
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=[entry])
        done = self._admin.incremental_alter_configs([resource], request_timeout=_TIMEOUT_S)
        done[resource].result(_TIMEOUT_S * 2)
        self.topics[name] = (self.topics[name][0], value)

    def _grow(self, name: str) -> None:
        count, value = self.topics[name]
        more = NewPartitions(name, count + 1, replica_assignment=[self._replicas])
        done = self._admin.create_partitions([more], request_timeout=_TIMEOUT_S)
        done[name].result(_TIMEOUT_S * 2)
        self.topics[name] = (count + 1, value)

    def _delete(self, name: str) -> None:
        done = self._admin.delete_topics([name], request_timeout=_TIMEOUT_S)
        done[name].result(_TIMEOUT_S * 2)
        del self.topics[name]
        self.deleted.add(name)

    # After the load

    def missing(self) -> list[str]:
        """Return the acknowledged changes that the cluster does not show."""
        listed = self._admin.list_topics(timeout=_TIMEOUT_S).topics
        lost = [f"{name} is not deleted" for name in sorted(self.deleted & set(listed))]
        for name, (count, value) in sorted(self.topics.items()):
            if name not in listed:
                lost.append(f"{name} does not exist")
            elif len(listed[name].partitions) != count:
                lost.append(f"{name} has {len(listed[name].partitions)} partitions, not {count}")
            elif value is not None and self._retention(name) != value:
                lost.append(f"{name} has {_CONFIG} {self._retention(name)}, not {value}")
        return lost

    def _retention(self, name: str) -> str | None:
        resource = ConfigResource(ResourceType.TOPIC, name)
        configs = self._admin.describe_configs([resource])[resource].result(_TIMEOUT_S)
        return configs[_CONFIG].value
