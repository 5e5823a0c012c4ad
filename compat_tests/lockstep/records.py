"""Steps about records: produced, validly or not, in every version; fetched, looked up, deleted.

Their topics are created, changed and recreated in between.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from compat_tests.lockstep.record_sets import NOT_PACKED_ANEW, RecordSet, malformed, sound
from compat_tests.lockstep.topics import Topic, Topics
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Callable

    from compat_tests.lockstep.kind import Moves

_MOST_TOPICS = 6
_CONFIGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("cleanup.policy", ("compact", "delete", "compact,delete")),
    ("compression.type", ("producer", "gzip", "lz4", "snappy", "zstd", "uncompressed")),
    ("message.timestamp.type", ("CreateTime", "LogAppendTime")),
    ("message.timestamp.before.max.ms", ("86400000", "9223372036854775807")),
    ("message.timestamp.after.max.ms", ("3600000", "1000", "9223372036854775807")),
    ("max.message.bytes", ("1048588", "200", "1000")),
    ("internal.segment.bytes", ("200", "1048576")),
    ("segment.ms", ("1000000000000", "5000")),
    ("index.interval.bytes", ("4096", "1")),
    ("min.insync.replicas", ("1", "2")),
)
_TIMESTAMP_MS = 1_700_000_000_000
_LARGE = 10_000_000
_MALFORMED_SHARE = 0.25
_LOWEST_PRODUCE = 3  # 0 to 2 are advertised for librdkafka's sake, but refused


class Records(Topics):
    name = "records"
    keys = frozenset(
        {
            ApiKey.PRODUCE,
            ApiKey.FETCH,
            ApiKey.LIST_OFFSETS,
            ApiKey.OFFSET_FOR_LEADER_EPOCH,
            ApiKey.DELETE_RECORDS,
            ApiKey.CREATE_TOPICS,
            ApiKey.DELETE_TOPICS,
            ApiKey.METADATA,
            ApiKey.INCREMENTAL_ALTER_CONFIGS,
            ApiKey.CREATE_PARTITIONS,
            ApiKey.DESCRIBE_PRODUCERS,
        }
    )

    def beginning(self) -> Moves:
        """Create a plain topic, and one that recompresses each batch."""
        yield from self.create(3)
        yield from self.create(1, {"compression.type": "lz4"})

    def moves(self) -> list[tuple[int, Callable[[], Moves]]]:
        return [
            (45, self.produce),
            (25, self.fetch),
            (12, self.list_offsets),
            (5, self.offset_for_leader_epoch),
            (7 if self.deletes_records else 0, self.delete_records),
            (4, self.another_topic),
            (3, self.other_config),
            (2, self.again),
            (1, self.unserved_version),
            (1, lambda: self.add_partitions(self.any_topic())),
        ]

    def ending(self) -> Moves:
        yield from self.survey()

    # -- moves -------------------------------------------------------------------------------

    def produce(self) -> Moves:
        version = self.version(ApiKey.PRODUCE, lowest=_LOWEST_PRODUCE)
        topics = self.some(self.topics, maximum=2 if self.maybe(0.2) else 1)
        if self.maybe(0.04):
            topics.append(self.strange_topic())
        acks = self.random.choice((2, -2) if self.maybe(0.03) else (-1, -1, -1, 1, 1, 0))
        data = [{**topic.both, "partition_data": self._partition_data(topic)} for topic in topics]
        request = {"acks": acks, "timeout_ms": 30_000, "topic_data": data}
        answer = yield from self.ask(ApiKey.PRODUCE, request, version=version)
        self.learn_ends(answer, topics)

    def fetch(self) -> Moves:
        topics = self.some(self.topics, maximum=2)
        topic_fields = [
            {
                **topic.both_in_fetch,
                "partitions": [
                    self._read(topic, self.random.choice(topic.partitions))
                    for _ in range(self._few())
                ],
            }
            for topic in topics
        ]
        for strange, index in ((self.strange_topic(), 0), (topics[-1], 99)):
            if self.maybe(0.05):
                wrong = {**strange.both_in_fetch, "partitions": [self._read(strange, index)]}
                topic_fields.insert(self.random.randint(0, len(topic_fields)), wrong)
        request = {
            "max_wait_ms": 0,
            "min_bytes": self.random.choice((0, 0, 1, 1000)),
            "max_bytes": self.random.choice((_LARGE, _LARGE, 0, 1, 300)),
            "isolation_level": self.random.choice((0, 1)),
            "session_epoch": -1,
            "topics": topic_fields,
        }
        if any(_is_packed_anew(topic) for topic in topics):
            # How much fits depends on the broker's compressor.
            request["max_bytes"] = _LARGE
            for fields in topic_fields:
                for partition in fields["partitions"]:
                    partition["partition_max_bytes"] = _LARGE
        yield from self.ask(ApiKey.FETCH, request)

    def list_offsets(self) -> Moves:
        version = self.version(ApiKey.LIST_OFFSETS)
        topic = self.strange_topic() if self.maybe(0.03) else self.any_topic()
        special = [-1, -2, -3, -4, -5, -6]
        times = [_TIMESTAMP_MS + self.random.randrange(-6, 21) * 1000 + n for n in (0, 1)]
        partitions = [
            {
                "partition_index": index,
                "timestamp": self.random.choice(special if self.maybe(0.5) else [*times, 0, 2**62]),
                "current_leader_epoch": self._leader_epoch(),
            }
            for index in self.some([*topic.partitions, 99] if self.maybe(0.1) else topic.partitions)
        ]
        request = {
            "replica_id": -1,
            "isolation_level": self.random.choice((0, 1)),
            "topics": [{"name": topic.name, "partitions": partitions}],
        }
        yield from self.ask(ApiKey.LIST_OFFSETS, request, version=version)

    def offset_for_leader_epoch(self) -> Moves:
        topic = self.strange_topic() if self.maybe(0.05) else self.any_topic()
        partitions = [
            {
                "partition": self.partition_of(topic),
                "current_leader_epoch": self._leader_epoch(),
                "leader_epoch": self.random.choice((0, 0, 1, 5, -1)),
            }
        ]
        request = {"replica_id": -1, "topics": [{"topic": topic.name, "partitions": partitions}]}
        yield from self.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, request)

    def delete_records(self) -> Moves:
        topic = self.strange_topic() if self.maybe(0.05) else self.any_topic()
        index = self.partition_of(topic)
        end = topic.ends[index] if index in topic.partitions else 0
        offset = self.random.choice((-1, -2, 0, end, end + 100, self.random.randint(0, end)))
        partition = {"partition_index": index, "offset": offset}
        request = {
            "topics": [{"name": topic.name, "partitions": [partition]}],
            "timeout_ms": 30_000,
        }
        yield from self.ask(ApiKey.DELETE_RECORDS, request)

    def another_topic(self) -> Moves:
        """Create a topic with some configs; if there are many, delete one."""
        if len(self.topics) >= _MOST_TOPICS:
            yield from self.delete(self.any_topic())
            return
        configs = {name: self.random.choice(values) for name, values in self.some([*_CONFIGS], 0)}
        yield from self.create(self.random.choice((1, 1, 2, 3)), configs)

    def other_config(self) -> Moves:
        name, values = self.random.choice(_CONFIGS)
        yield from self.alter(self.any_topic(), name, self.random.choice(values))

    def again(self) -> Moves:
        yield from self.recreate(self.any_topic())

    # -- parts -------------------------------------------------------------------------------

    def _few(self) -> int:
        return self.random.choice((1, 1, 1, 2, 3))

    def _leader_epoch(self) -> int:
        return self.random.choice((-1, -1, -1, 0, 0, 1, 9, -2))

    def _partition_data(self, topic: Topic) -> list[dict[str, Any]]:
        indexes = self.some(topic.partitions, maximum=self._few())
        if self.maybe(0.04):
            indexes[0] = self.partition_of(topic)
            # No duplicates: Apache Kafka checks both before it uses the last (compatibility.md).
            indexes = list(dict.fromkeys(indexes))
        return [{"index": index, "records": self._record_set(topic).records} for index in indexes]

    def _record_set(self, topic: Topic) -> RecordSet:
        if self.maybe(_MALFORMED_SHARE):
            record_set = malformed(self.random)
            if record_set.shape not in NOT_PACKED_ANEW or not _is_packed_anew(topic):
                return record_set
        return sound(self.random)

    def _read(self, topic: Topic, index: int) -> dict[str, Any]:
        end = topic.ends[index] if index in topic.partitions else 0
        offset = self.random.randint(0, end + 1)
        if self.maybe(0.08):
            offset = self.random.choice((-1, end + 1000))
        return {
            "partition": index,
            "current_leader_epoch": self._leader_epoch(),
            "fetch_offset": offset,
            "last_fetched_epoch": self.random.choice((-1, -1, -1, 0, 1)),
            "partition_max_bytes": self.random.choice((_LARGE, _LARGE, 0, 1, 200)),
        }


def _is_packed_anew(topic: Topic) -> bool:
    return topic.configs.get("compression.type", "producer") != "producer"
