"""image.apply gives the same result however the records are split, encoded or condensed.

Random histories of a cluster are replayed at once, in random pieces, through bytes, and from a
snapshot at a random place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.support.harness.budget import Budget
from wirebroker.codecs.metadata_records import (
    MetadataRecord,
    RecordType,
    decode_metadata_record,
    encode_metadata_record,
    metadata_record,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    config_record,
    to_records,
)
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder

if TYPE_CHECKING:
    from random import Random

    import pytest

KIND = RecordType


class History:
    """Makes records that fit the earlier ones."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.topics: dict[bytes, int] = {}  # id -> partitions
        self.names: dict[bytes, str] = {}
        self.brokers: set[int] = set()
        self.next_producer_id = 0
        self.records: list[MetadataRecord] = []

    def grow(self) -> None:
        choices = [self.create, self.register, self.config, self.feature, self.ids, self.keep]
        if self.topics:
            choices += [self.change, self.change, self.enlarge, self.remove]
        if self.brokers:
            choices += [self.move_broker]
        self.random.choice(choices)()

    def transaction(self, *, size: int, is_aborted: bool) -> None:
        """Add a transaction, whose changes are forgotten if it is aborted."""
        before = dict(self.topics), dict(self.names), set(self.brokers)
        self.records.append(metadata_record(KIND.BEGIN_TRANSACTION, name="t"))
        for _ in range(size):
            self.grow()
        end = KIND.ABORT_TRANSACTION if is_aborted else KIND.END_TRANSACTION
        self.records.append(metadata_record(end))
        if is_aborted:
            self.topics, self.names, self.brokers = before

    def some_topic(self) -> bytes:
        return self.random.choice(list(self.topics))

    def create(self) -> None:
        topic_id = self.random.randbytes(16)
        free = [name for name in "abcdefgh" if name not in self.names.values()]
        if not free:
            return
        self.topics[topic_id] = 0
        self.names[topic_id] = free[0]
        self.records.append(metadata_record(KIND.TOPIC, name=free[0], topic_id=topic_id))
        for _ in range(self.random.randrange(1, 4)):
            self.partition(topic_id)

    def enlarge(self) -> None:
        self.partition(self.some_topic())

    def partition(self, topic_id: bytes) -> None:
        replicas = self.random.sample(range(5), 2)
        self.records.append(
            metadata_record(
                KIND.PARTITION,
                partition_id=self.topics[topic_id],
                topic_id=topic_id,
                replicas=replicas,
                isr=replicas[: self.random.randrange(1, 3)],
                leader=replicas[0],
                leader_epoch=self.random.randrange(5),
                partition_epoch=0,
                directories=[self.random.randbytes(16) for _ in replicas],
                eligible_leader_replicas=self.random.choice([None, [7]]),
            )
        )
        self.topics[topic_id] += 1

    def change(self) -> None:
        topic_id = self.some_topic()
        partition = self.random.randrange(self.topics[topic_id])
        isr = self.random.sample(range(5), 2)
        fields: dict[str, Any] = self.random.choice(
            [
                {"isr": isr, "leader": isr[0]},
                {"leader": -1},
                {"isr": isr, "leader": isr[1], "replicas": isr},
                {"eligible_leader_replicas": [8], "last_known_elr": []},
                {"adding_replicas": [9], "removing_replicas": [1]},
            ]
        )
        self.records.append(
            metadata_record(
                KIND.PARTITION_CHANGE, partition_id=partition, topic_id=topic_id, **fields
            )
        )

    def remove(self) -> None:
        topic_id = self.some_topic()
        del self.topics[topic_id], self.names[topic_id]
        self.records.append(metadata_record(KIND.REMOVE_TOPIC, topic_id=topic_id))

    def register(self) -> None:
        node_id = self.random.randrange(4)
        self.brokers.add(node_id)
        self.records.append(
            metadata_record(
                KIND.REGISTER_BROKER,
                broker_id=node_id,
                incarnation_id=self.random.randbytes(16),
                broker_epoch=len(self.records),
                end_points=[
                    {"name": "P", "host": "h", "port": 1, "security_protocol": 0},
                ],
                features=[
                    {"name": "f", "min_supported_version": 0, "max_supported_version": 3},
                ],
                rack=self.random.choice([None, "r"]),
                log_dirs=[self.random.randbytes(16)],
            )
        )

    def move_broker(self) -> None:
        node_id = self.random.choice(sorted(self.brokers))
        record = metadata_record(
            KIND.BROKER_REGISTRATION_CHANGE,
            broker_id=node_id,
            broker_epoch=1,
            fenced=self.random.choice([-1, 0, 1]),
            in_controlled_shutdown=self.random.choice([0, 1]),
            cordoned_log_dirs=self.random.choice([None, []]),
        )
        if self.random.random() < 0.2:
            self.brokers.discard(node_id)
            record = metadata_record(KIND.UNREGISTER_BROKER, broker_id=node_id, broker_epoch=1)
        self.records.append(record)

    def config(self) -> None:
        names = [*self.names.values(), ""]
        value = self.random.choice([None, "1", "2"])
        self.records.append(
            config_record(
                self.random.choice([2, 4]),
                self.random.choice(names),
                self.random.choice("xyz"),
                value,
            )
        )

    def feature(self) -> None:
        self.records.append(
            metadata_record(
                KIND.FEATURE_LEVEL,
                name=self.random.choice(["metadata.version", "group.version"]),
                feature_level=self.random.randrange(3),
            )
        )

    def ids(self) -> None:
        self.next_producer_id += 1000
        self.records.append(
            metadata_record(
                KIND.PRODUCER_IDS,
                broker_id=1,
                broker_epoch=2,
                next_producer_id=self.next_producer_id,
            )
        )

    def keep(self) -> None:
        name = self.random.choice("uv")
        self.records.append(
            self.random.choice(
                [
                    metadata_record(KIND.USER_SCRAM_CREDENTIAL, name=name, mechanism=1),
                    metadata_record(KIND.REMOVE_USER_SCRAM_CREDENTIAL, name=name, mechanism=1),
                    metadata_record(KIND.NO_OP),
                    metadata_record(
                        KIND.CLIENT_QUOTA,
                        entity=[{"entity_type": "user", "entity_name": name}],
                        key="k",
                        value=1.0,
                        remove=self.random.random() < 0.3,
                    ),
                ]
            )
        )


def history(random: Random) -> list[MetadataRecord]:
    result = History(random)
    for _ in range(random.randrange(60)):
        if random.random() < 0.1:
            result.transaction(size=random.randrange(6), is_aborted=random.random() < 0.5)
        else:
            result.grow()
    return result.records


def replay(records: list[MetadataRecord], image: ClusterImage) -> ClusterImage:
    builder = ImageBuilder(image).apply_all(records)
    return builder.build(offset=image.offset + len(records), epoch=1)[0]


def in_pieces(records: list[MetadataRecord], random: Random) -> ClusterImage:
    """Apply records in pieces of random length, also empty ones."""
    image = ClusterImage()
    remaining = records
    while remaining:
        size = random.randrange(len(remaining) + 1)
        image = replay(remaining[:size], image)
        remaining = remaining[size:]
    return replay([], image)


def same_state(left: ClusterImage, right: ClusterImage) -> bool:
    """Return whether two images are equal, apart from their offsets."""
    names = set(ClusterImage.__slots__) - {"offset", "epoch"}
    return all(getattr(left, name) == getattr(right, name) for name in names)


def test_image_depends_only_on_the_records(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(pytestconfig, seconds=1.5)
    count = 0
    for _ in budget.rounds():
        count += 1
        random = budget.random
        records = history(random)
        expected = replay(records, ClusterImage())
        through_bytes = [
            decode_metadata_record(encode_metadata_record(record)) for record in records
        ]
        assert in_pieces(records, random) == expected, budget.seed
        assert replay(through_bytes, ClusterImage()) == expected, budget.seed
    with capsys.disabled():
        print(f"\n{count} histories replayed, seed {budget.seed}")  # noqa: T201


def test_a_snapshot_and_the_records_after_it_give_the_same_image(
    pytestconfig: pytest.Config, capsys: pytest.CaptureFixture[str]
) -> None:
    budget = Budget(pytestconfig, seconds=1.5)
    count = 0
    for _ in budget.rounds():
        count += 1
        records = history(budget.random)
        cut = budget.random.randrange(len(records) + 1)
        before = replay(records[:cut], ClusterImage())
        if before.open_transaction is not None:
            continue  # no snapshot is taken inside a transaction
        snapshot = [
            decode_metadata_record(encode_metadata_record(record)) for record in to_records(before)
        ]
        restored = replay(snapshot, ClusterImage())
        assert same_state(restored, before), budget.seed
        expected = replay(records, ClusterImage())
        assert same_state(replay(records[cut:], restored), expected), budget.seed
    with capsys.disabled():
        print(f"\n{count} histories cut by a snapshot, seed {budget.seed}")  # noqa: T201
