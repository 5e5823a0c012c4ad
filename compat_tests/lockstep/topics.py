"""The topics of a run, for reading and writing."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.kind import Kind, Moves
from compat_tests.lockstep.steps import Expression, command
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping

    from compat_tests.lockstep.steps import Answer

_METADATA_WITH_IDS = 12
_ALL = 10_000_000  # bytes
NO_ID = bytes(16)
UNKNOWN_ID = b"\x07" * 16


@dataclass(slots=True)
class Topic:
    name: str
    topic_id: Expression | bytes = NO_ID
    ends: list[int] = field(default_factory=list)  # assumed end offset of each partition
    configs: dict[str, str] = field(default_factory=dict)

    @property
    def both(self) -> dict[str, Any]:
        """Name and id; each version's fields use one of them."""
        return {"name": self.name, "topic_id": self.topic_id}

    @property
    def both_in_fetch(self) -> dict[str, Any]:
        return {"topic": self.name, "topic_id": self.topic_id}

    @property
    def partitions(self) -> list[int]:
        return list(range(len(self.ends)))


class Topics(Kind):
    """A kind that has topics.

    Attributes:
        deletes_records: Whether DeleteRecords is among its moves.
    """

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.topics: list[Topic] = []
        self.deletes_records = True
        self._names = 0

    # -- what the moves of many kinds consist of ---------------------------------------------

    def create(self, partitions: int, configs: Mapping[str, str] | None = None) -> Moves:
        self._names += 1
        name = f"{self.prefix}t{self._names}"
        yield from self.create_named(name, partitions, configs)

    def create_named(
        self, name: str, partitions: int, configs: Mapping[str, str] | None = None
    ) -> Moves:
        """Create a topic, wait for its partitions and learn its id."""
        chosen = dict(configs or {})
        entries = [{"name": key, "value": value} for key, value in chosen.items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        request = {"topics": [{**topic, "configs": entries}], "timeout_ms": 30_000}
        answer = yield from self.ask(ApiKey.CREATE_TOPICS, request)
        if not answer.is_good:
            return
        created = Topic(name, NO_ID, [0] * partitions, chosen)
        self.topics.append(created)
        yield from self.settle_topic(created)

    def settle_topic(self, topic: Topic) -> Moves:
        """Wait until all partitions are served; learn the topic's id."""
        yield command(["wait", topic.name, str(len(topic.ends))])
        request = {"topics": [{"name": topic.name}], "allow_auto_topic_creation": False}
        answer = yield from self.ask(ApiKey.METADATA, request, version=_METADATA_WITH_IDS)
        topic_id = answer.name(f"topics[{topic.name}].topic_id", "T")
        assert topic_id is not None, answer.lines
        topic.topic_id = topic_id

    def delete(self, topic: Topic) -> Moves:
        """Delete a topic and wait until it is gone."""
        version = self.version(ApiKey.DELETE_TOPICS)
        by_id = {"name": None, "topic_id": topic.topic_id}
        by_name = {"name": topic.name, "topic_id": NO_ID}
        request = {
            "topics": [by_id if self.maybe(0.5) else by_name],
            "topic_names": [topic.name],
            "timeout_ms": 30_000,
        }
        answer = yield from self.ask(ApiKey.DELETE_TOPICS, request, version=version)
        if answer.is_good:
            self.topics.remove(topic)
            yield command(["wait", topic.name, "0"])

    def recreate(self, topic: Topic) -> Moves:
        yield from self.delete(topic)
        if topic not in self.topics:
            yield from self.create_named(topic.name, len(topic.ends), topic.configs)

    def add_partitions(self, topic: Topic) -> Moves:
        count = len(topic.ends) + 1
        new_partitions = {"name": topic.name, "count": count, "assignments": None}
        request = {"topics": [new_partitions], "timeout_ms": 30_000, "validate_only": False}
        answer = yield from self.ask(ApiKey.CREATE_PARTITIONS, request)
        if answer.is_good:
            topic.ends.append(0)
            yield command(["wait", topic.name, str(count)])

    def alter(self, topic: Topic, name: str, value: str) -> Moves:
        """Set a config of a topic and wait until it applies."""
        change = {"name": name, "config_operation": 0, "value": value}
        resource = {"resource_type": 2, "resource_name": topic.name, "configs": [change]}
        request = {"resources": [resource], "validate_only": False}
        answer = yield from self.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
        if answer.is_good:
            topic.configs[name] = value
            yield command(["wait-config", topic.name, name, value])

    def until_applied(self, topic: Topic) -> Moves:
        """Wait until the broker has applied the controller's changes, by making one more."""
        self._names += 1
        yield from self.alter(topic, "flush.messages", str(1_000_000 + self._names))

    # -- choices -----------------------------------------------------------------------------

    def any_topic(self) -> Topic:
        return self.random.choice(self.topics)

    def partition_of(self, topic: Topic) -> int:
        """Return a random partition, sometimes a nonexistent one."""
        if self.maybe(0.04):
            return self.random.choice((-1, len(topic.ends), 99))
        return self.random.choice(topic.partitions)

    def strange_topic(self) -> Topic:
        return Topic(f"{self.prefix}nowhere", UNKNOWN_ID, [0])

    def learn_ends(self, answer: Answer, topics: list[Topic]) -> None:
        """Update the minimum end offsets of partitions from a Produce response."""
        for number, topic in enumerate(topics):
            for label in (topic.name, str(topic.topic_id), str(number)):
                for index in topic.partitions:
                    path = f"responses[{label}].partition_responses[{index}].base_offset"
                    topic.ends[index] = max(topic.ends[index], answer.number(path) + 1)

    # -- at the end --------------------------------------------------------------------------

    def survey(self) -> Moves:
        """Request the whole contents of all partitions."""
        for topic in self.topics:
            yield from self._survey_topic(topic)

    def _survey_topic(self, topic: Topic) -> Moves:
        request = {"topics": [{"name": topic.name}], "allow_auto_topic_creation": False}
        yield from self.ask(ApiKey.METADATA, request, version=_METADATA_WITH_IDS)
        for timestamp, isolation in ((-2, 0), (-1, 0), (-1, 1), (-3, 0)):
            partitions_field = [
                {"partition_index": index, "timestamp": timestamp, "current_leader_epoch": -1}
                for index in topic.partitions
            ]
            offsets = {
                "replica_id": -1,
                "isolation_level": isolation,
                "topics": [{"name": topic.name, "partitions": partitions_field}],
            }
            answer = yield from self.ask(ApiKey.LIST_OFFSETS, offsets, version=7)
            if timestamp == -2:
                starts = [
                    max(0, answer.number(f"topics[0].partitions[{index}].offset"))
                    for index in topic.partitions
                ]
        for isolation in (0, 1):
            fetch_partitions = [
                {"partition": index, "fetch_offset": start, "partition_max_bytes": _ALL}
                for index, start in enumerate(starts)
            ]
            read = {
                "max_wait_ms": 0,
                "min_bytes": 0,
                "isolation_level": isolation,
                "topics": [{"topic": topic.name, "partitions": fetch_partitions}],
            }
            yield from self.ask(ApiKey.FETCH, read, version=12)
        partitions = {"name": topic.name, "partition_indexes": topic.partitions}
        yield from self.ask(ApiKey.DESCRIBE_PRODUCERS, {"topics": [partitions]})
