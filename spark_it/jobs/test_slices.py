"""A slice is sent once, however many processes try (without Spark)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException

from compat_tests.clients import confluent
from compat_tests.clients.message import WAIT_S
from spark_it.kit import records
from tests.support.tools.waiting import eventually
from wirebroker.pipelines.delivery.positions import NOWHERE, Positions
from wirebroker.pipelines.delivery.slice_sender import SliceOptions, SliceSent, send_slice
from wirebroker.pipelines.job.errors import PositionError
from wirebroker.pipelines.rows.placed_rows import PlacedRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

IDENTITY = "the checkpoint"


@pytest.fixture
def slice_options(broker: Broker, topic: str) -> SliceOptions:
    records.create_topic(broker.bootstrap, topic, partitions=2)
    slice_options = SliceOptions(
        {"bootstrap.servers": broker.bootstrap}, f"job-{topic}", topic, IDENTITY, 0
    )
    eventually(lambda: has_coordinator(slice_options))
    return slice_options


def has_coordinator(slice_options: SliceOptions) -> bool:
    """Return whether the job's group has a coordinator; Apache Kafka's first groups wait for it."""
    try:
        with positions_of(slice_options) as positions:
            positions.read(range(2))
    except KafkaException as error:
        if "COORD" not in error.args[0].name():
            raise
        return False
    return True


def positions_of(slice_options: SliceOptions, identity: str = IDENTITY) -> Positions:
    return Positions(slice_options.kafka, slice_options.job, slice_options.topic, identity)


def send(slice_options: SliceOptions, slice_rows: Iterator[PlacedRow]) -> SliceSent:
    with positions_of(slice_options) as positions:
        return send_slice(slice_options, 1, slice_rows, positions)


def rows(slice_options: SliceOptions, *numbers: int) -> Iterator[PlacedRow]:
    for number in numbers:
        headers = [{"key": "h", "value": b"%d" % number}]
        value = b"%d" % number
        yield PlacedRow(
            1, "s", 0, number, slice_options.topic, 1, b"k", value, 1_000 + number, headers
        )


def read(slice_options: SliceOptions, count: int) -> list[int]:
    sent_records = records.read(
        slice_options.kafka["bootstrap.servers"], slice_options.topic, count, partitions=2
    )
    assert {partition for partition, _, _ in sent_records} == {1}
    return [number for _, _, number in sent_records]


def test_sent_slice_is_not_sent_again(slice_options: SliceOptions) -> None:
    with positions_of(slice_options) as positions:
        assert positions.read(range(2)) == {0: NOWHERE, 1: NOWHERE}
        positions.write({0: 0, 1: 0})
        sent = send(slice_options, rows(slice_options, 1, 2, 3))
        assert (sent.records, sent.was_sent, sent.sent_bytes) == (3, False, 6)
        assert positions.read(range(2)) == {0: 0, 1: 1}
        assert send(slice_options, rows(slice_options, 1, 2, 3)) == SliceSent(
            1, 0, 0, 0, was_sent=True
        )
        assert send(slice_options._replace(batch=1), rows(slice_options)).records == 0
        assert positions.read([1]) == {1: 2}
        assert send(slice_options._replace(batch=2), rows(slice_options, 4)).records == 1
    assert read(slice_options, 4) == [1, 2, 3, 4]


def test_overtaken_attempt_sends_nothing(slice_options: SliceOptions) -> None:
    with positions_of(slice_options) as positions:
        positions.write({1: 0})

    def overtaken() -> Iterator[PlacedRow]:
        yield from rows(slice_options, 1, 2)
        assert send(slice_options, rows(slice_options, 1, 2, 3)).records == 3
        yield from rows(slice_options, 3)

    with pytest.raises(KafkaException):
        send(slice_options, overtaken())
    assert send(slice_options, rows(slice_options, 1, 2, 3)).was_sent
    assert read(slice_options, 3) == [1, 2, 3]


def test_failed_attempt_leaves_no_committed_records(slice_options: SliceOptions) -> None:
    with positions_of(slice_options) as positions:
        positions.write({1: 0})

    def breaks() -> Iterator[PlacedRow]:
        yield from rows(slice_options, *range(2_000))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        send(slice_options, breaks())
    assert send(slice_options, rows(slice_options, 1, 2)).records == 2
    assert read(slice_options, 2) == [1, 2]


def test_attempt_ending_within_transaction_blocks_no_later_attempt(
    slice_options: SliceOptions,
) -> None:
    with positions_of(slice_options) as positions:
        positions.write({1: 0})
        earlier_producer = confluent.make_producer(
            slice_options.kafka["bootstrap.servers"],
            {"transactional.id": f"{slice_options.job}.{slice_options.topic}.1"},
        )
        earlier_producer.init_transactions(WAIT_S)
        earlier_producer.begin_transaction()
        earlier_producer.produce(slice_options.topic, b"left", partition=1)
        earlier_producer.send_offsets_to_transaction(
            positions.offsets({1: 1}), positions.group(), WAIT_S
        )
    with Positions(
        slice_options.kafka, slice_options.job, slice_options.topic, IDENTITY, stable=False
    ) as unstable:
        assert unstable.read([1]) == {1: 0}
    assert send(slice_options, rows(slice_options, 1, 2)).records == 2
    with positions_of(slice_options) as positions:
        assert positions.read([1]) == {1: 1}
    assert read(slice_options, 2) == [1, 2]


def test_missing_or_foreign_positions_are_rejected(slice_options: SliceOptions) -> None:
    with pytest.raises(PositionError, match="has no position for slice 1"):
        send(slice_options, rows(slice_options, 1))
    with positions_of(slice_options) as positions:
        positions.write({1: 0})
    with (
        positions_of(slice_options, "another") as positions,
        pytest.raises(PositionError, match="positions of another checkpoint"),
    ):
        positions.read([1])
    assert records.end_offsets(
        slice_options.kafka["bootstrap.servers"], slice_options.topic, partitions=2
    ) == [0, 0]


def test_partition_counts_of_topics(slice_options: SliceOptions) -> None:
    with positions_of(slice_options) as positions:
        assert positions.partition_count(slice_options.topic) == 2
        assert positions.partition_count(f"{slice_options.topic}-none") == 0
    assert not confluent.make_producer(slice_options.kafka["bootstrap.servers"]).flush(0)
