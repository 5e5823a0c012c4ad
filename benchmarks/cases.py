"""The benchmark's cases: their loads, generators and target ratios.

Each run has a new topic; consuming cases keep theirs.
"""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks import raw_requests
from benchmarks.load import generators
from benchmarks.load.growth_requests import await_leaders, client_of

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from benchmarks.measurement.pairs import Sample
    from tests.support.brokers.brokers import Broker

# Scale of runs with --quick.
QUICK_SCALE = 0.5
_numbers = itertools.count()


@dataclass(frozen=True)
class Case:
    """A row of the table.

    Attributes:
        drive: Runs the generator on (broker, topic).
        reach: Target ratios to Apache Kafka, of rate and of CPU per record.
        fill: Fills the topic once per broker, for cases that read.
        is_awake: Whether cores are kept awake: waking costs more than a small request, but a
            polling core slows down bulk.
    """

    name: str
    drive: Callable[[Broker, str], Sample]
    reach: tuple[float, float] | None = None
    partitions: int = 1
    fill: Callable[[Broker, str], object] | None = None
    unit: str = "record"
    is_quick: bool = False
    is_awake: bool = False

    def prepare(self, broker: Broker) -> str:
        filled_topic = f"kept-{abs(hash(self.name)) % 10**8}"
        admin = AdminClient({"bootstrap.servers": broker.bootstrap})
        if self.fill is not None:
            if filled_topic not in admin.list_topics(timeout=30).topics:
                _create(admin, broker, filled_topic, self.partitions)
                self.fill(broker, filled_topic)
            return filled_topic
        topic = f"case-{next(_numbers):06d}"
        _create(admin, broker, topic, self.partitions)
        return topic

    def run(self, broker: Broker, topic: str) -> Sample:
        return self.drive(broker, topic)

    def clean(self, broker: Broker, topic: str) -> None:
        if self.fill is None:
            admin = AdminClient({"bootstrap.servers": broker.bootstrap})
            admin.delete_topics([topic])[topic].result(30)


def _create(admin: AdminClient, broker: Broker, topic: str, partitions: int) -> None:
    settings = {"file.delete.delay.ms": "1000"}
    admin.create_topics([NewTopic(topic, partitions, 1, config=settings)])[topic].result(30)
    give_up = time.monotonic() + 30
    while True:  # Apache Kafka's broker may learn of it later
        metadata = admin.list_topics(topic, timeout=30).topics[topic]
        if metadata.error is None and len(metadata.partitions) == partitions:
            break
        if time.monotonic() > give_up:
            raise RuntimeError(f"{topic} is not ready: {metadata.error}")
    client = client_of(broker)
    await_leaders(client, topic, partitions)
    client.close()


def named(table: Sequence[Case], texts: Sequence[str]) -> list[Case]:
    return [case for case in table if not texts or any(text in case.name for text in texts)]


def all_cases(scale: float) -> list[Case]:
    """Return all cases; `scale` multiplies the lengths of runs."""
    return [
        *_raw_produce_cases(2 * scale),
        *_raw_fetch_cases(2 * scale),
        *_other_raw_cases(2 * scale),
        *_librdkafka_cases(scale),
        *_java_cases(scale),
    ]


def _raw_produce_cases(seconds: float) -> list[Case]:
    small = generators.one_batch(records=1, record_bytes=100)

    def produce(connections: int, batch: bytes = small, **options: Any) -> Any:
        return partial(
            generators.raw_produce,
            connections=connections,
            batch=batch,
            records=1,
            seconds=seconds,
            **options,
        )

    big = partial(generators.one_batch, records=1)
    return [
        Case("100 B, acks=all, 1 connection", produce(1), (3, 5), is_quick=True, is_awake=True),
        Case("100 B, acks=1, 1 connection", produce(1, acks=1), is_awake=True),
        Case("100 B, 50 connections", produce(50), is_quick=True, is_awake=True),
        Case("100 B, acks=1, 50 connections", produce(50, acks=1), is_quick=True, is_awake=True),
        Case(
            "100 B, idempotent, 50 connections",
            partial(raw_requests.idempotent_produce, connections=50, seconds=seconds),
            is_quick=True,
            is_awake=True,
        ),
        Case("100 B, 200 connections", produce(200), (1.5, 2), is_quick=True, is_awake=True),
        Case("100 B, 1,000 connections", produce(1000), (2, 3), is_quick=True, is_awake=True),
        Case("cores may sleep: 100 B, 1 connection", produce(1), is_quick=True),
        Case("cores may sleep: 100 B, 200 connections", produce(200)),
        Case("cores may sleep: 100 B, 1,000 connections", produce(1000)),
        Case(
            "100 B, 200 connections, 100 partitions",
            produce(200, partitions=100),
            partitions=100,
            is_awake=True,
        ),
        *(
            Case(
                f"100 B, 6 partitions in a request, {connections} connections",
                produce(connections, partitions=6, per_request=6),
                (1.3, 1.6) if connections == 50 else None,
                partitions=6,
                is_quick=connections == 50,
                is_awake=True,
            )
            for connections in (20, 50)
        ),
        Case(
            "produce 64 KiB, 4 connections",
            produce(4, big(record_bytes=65_000)),
            (1.5, 2),
            unit="request",
            is_quick=True,
        ),
        Case(
            "produce 1 MiB, 2 connections",
            produce(2, big(record_bytes=1_000_000)),
            (3, 3),
            unit="request",
        ),
    ]


def _raw_fetch_cases(seconds: float) -> list[Case]:
    def fetch(connections: int, max_bytes: int) -> Any:
        return partial(
            generators.raw_fetch, connections=connections, max_bytes=max_bytes, seconds=seconds
        )

    def fill(broker: Broker, topic: str) -> object:
        return generators.librdkafka(
            broker,
            topic,
            "produce",
            # librdkafka's default is 1 MB, and a fetch returns at least one batch.
            {"records": 20_000, "record_bytes": 1000, "config": {"batch.size": 16_384}},
        )

    def fill_small(broker: Broker, topic: str) -> object:
        options = {"records": 2_000, "record_bytes": 100, "config": {"batch.num.messages": 1}}
        return generators.librdkafka(broker, topic, "produce", options)

    return [
        Case(
            "fetch 1 KiB, 20 connections",
            fetch(20, 1024),
            (1.2, 1.4),
            fill=fill_small,
            unit="request",
            is_quick=True,
            is_awake=True,
        ),
        Case(
            "fetch 64 KiB, 4 connections",
            fetch(4, 65_536),
            (1.5, 2),
            fill=fill,
            unit="request",
            is_quick=True,
        ),
        Case(
            "fetch 1 MiB, 2 connections", fetch(2, 1 << 20), (1.2, 1.5), fill=fill, unit="request"
        ),
    ]


def _other_raw_cases(seconds: float) -> list[Case]:
    return [
        Case(
            f"{name}, 20 connections",
            partial(drive, connections=20, seconds=seconds),
            (0, 1),  # no target for the rate
            fill=fill,
            unit="request",
            is_quick=True,
            is_awake=True,
        )
        for name, drive, fill in (
            ("OffsetCommit", raw_requests.offset_commits, None),
            (
                "ListOffsets by time",
                raw_requests.searches_by_time,
                raw_requests.fill_with_times,
            ),
        )
    ]


def _librdkafka_cases(scale: float) -> list[Case]:
    def produce(records: int, record_bytes: int, *, transaction: int = 0, **config: object) -> Any:
        options: dict[str, object] = {
            "records": int(records * scale),
            "record_bytes": record_bytes,
            "config": {name.replace("_", "."): value for name, value in config.items()},
        }
        if transaction:
            options["transaction"] = transaction
        return partial(generators.librdkafka, verb="produce", options=options)

    def consume(records: int) -> Any:
        return partial(generators.librdkafka, verb="consume", options={"records": records})

    def fill(records: int, record_bytes: int) -> Any:
        options = {"records": records, "record_bytes": record_bytes}
        return partial(generators.librdkafka, verb="produce", options=options)

    bulk = int(2_000_000 * scale)
    return [
        Case(
            "200 B, batch 1 (librdkafka)",
            produce(80_000, 200, acks=1, batch_num_messages=1, linger_ms=0),
            (4, 6),
            is_quick=True,
        ),
        Case(
            "200 B, batch 50 (librdkafka)",
            produce(1_500_000, 200, acks=1, batch_num_messages=50),
            (2, 3),
        ),
        Case(
            "100 B, 1 partition, default batching (librdkafka)",
            produce(3_000_000, 100),
            (1.1, 1.5),
            is_quick=True,
        ),
        Case("100 B, 6 partitions (librdkafka)", produce(3_000_000, 100), partitions=6),
        Case("1 KiB, idempotent (librdkafka)", produce(500_000, 1024, enable_idempotence=True)),
        *(
            Case(f"1 KiB, {codec} (librdkafka)", produce(500_000, 1024, compression_codec=codec))
            for codec in ("lz4", "zstd")
        ),
        Case(
            "200 B, transactions of 1,000 (librdkafka)",
            produce(200_000, 200, transaction=1000, transactional_id="bench"),
            is_quick=True,
        ),
        Case("consume 200 B (librdkafka)", consume(bulk), fill=fill(bulk, 200)),
        Case(
            "consume 2 GB of 1 KiB (librdkafka)",
            consume(bulk),
            (1.0, 1.0),
            fill=fill(bulk, 1024),
        ),
    ]


def _java_cases(scale: float) -> list[Case]:
    def produce(records: int, record_bytes: int, **properties: object) -> Any:
        return partial(
            generators.java_producer,
            records=int(records * scale),
            record_bytes=record_bytes,
            properties={name.replace("_", "."): str(value) for name, value in properties.items()},
        )

    bulk = int(2_000_000 * scale)
    fill_options = {"records": bulk, "record_bytes": 1024}
    return [
        *(
            Case(
                f"1 KiB, {codec} (Java)",
                produce(400_000, 1024, compression_type=codec),
                (1.1, 2),
                is_quick=codec == "none",
            )
            for codec in ("none", "lz4", "zstd")
        ),
        Case("1 KiB, 6 partitions (Java)", produce(400_000, 1024), partitions=6),
        Case("1 KiB, 100 partitions (Java)", produce(400_000, 1024), partitions=100),
        Case(
            "consume 2 GB of 1 KiB (Java)",
            partial(generators.java_consumer, records=bulk),
            (1.3, 1.3),
            fill=partial(generators.librdkafka, verb="produce", options=fill_options),
        ),
        Case(
            "end to end, one at a time (Java)",
            partial(generators.end_to_end_latency, records=int(5_000 * scale)),
            (2, 2),
            is_quick=True,
        ),
    ]
