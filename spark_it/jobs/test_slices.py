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
from wirebroker.pipelines.delivery.slice_sender import SliceSent, SliceWish, send_slice
from wirebroker.pipelines.job.errors import PositionError
from wirebroker.pipelines.rows.placed_rows import PlacedRow

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.support.brokers.brokers import Broker

IDENTITY = "the checkpoint"


@pytest.fixture
def wish(broker: Broker, topic: str) -> SliceWish:
    records.create_topic(broker.bootstrap, topic, partitions=2)
    wish = SliceWish({"bootstrap.servers": broker.bootstrap}, f"job-{topic}", topic, IDENTITY, 0)
    eventually(lambda: has_coordinator(wish))
    return wish


def has_coordinator(wish: SliceWish) -> bool:
    """Return whether the job's group has a coordinator; Apache Kafka's first groups wait for it."""
    try:
        with positions_of(wish) as positions:
            positions.read(range(2))
    except KafkaException as error:
        if "COORD" not in error.args[0].name():
            raise
        return False
    return True


def positions_of(wish: SliceWish, identity: str = IDENTITY) -> Positions:
    return Positions(wish.kafka, wish.job, wish.topic, identity)


def send(wish: SliceWish, given: Iterator[PlacedRow]) -> SliceSent:
    with positions_of(wish) as positions:
        return send_slice(wish, 1, given, positions)


def rows(wish: SliceWish, *numbers: int) -> Iterator[PlacedRow]:
    for number in numbers:
        headers = [{"key": "h", "value": b"%d" % number}]
        value = b"%d" % number
        yield PlacedRow(1, "s", 0, number, wish.topic, 1, b"k", value, 1_000 + number, headers)


def read(wish: SliceWish, count: int) -> list[int]:
    found = records.read(wish.kafka["bootstrap.servers"], wish.topic, count, partitions=2)
    assert {partition for partition, _, _ in found} == {1}
    return [number for _, _, number in found]


def test_a_slice_that_was_sent_is_not_sent_again(wish: SliceWish) -> None:
    with positions_of(wish) as positions:
        assert positions.read(range(2)) == {0: NOWHERE, 1: NOWHERE}
        positions.write({0: 0, 1: 0})
        sent = send(wish, rows(wish, 1, 2, 3))
        assert (sent.records, sent.was_sent, sent.sent_bytes) == (3, False, 6)
        assert positions.read(range(2)) == {0: 0, 1: 1}
        assert send(wish, rows(wish, 1, 2, 3)) == SliceSent(1, 0, 0, 0, was_sent=True)
        assert send(wish._replace(batch=1), rows(wish)).records == 0
        assert positions.read([1]) == {1: 2}
        assert send(wish._replace(batch=2), rows(wish, 4)).records == 1
    assert read(wish, 4) == [1, 2, 3, 4]


def test_an_attempt_that_is_overtaken_sends_nothing(wish: SliceWish) -> None:
    with positions_of(wish) as positions:
        positions.write({1: 0})

    def overtaken() -> Iterator[PlacedRow]:
        yield from rows(wish, 1, 2)
        assert send(wish, rows(wish, 1, 2, 3)).records == 3
        yield from rows(wish, 3)

    with pytest.raises(KafkaException):
        send(wish, overtaken())
    assert send(wish, rows(wish, 1, 2, 3)).was_sent
    assert read(wish, 3) == [1, 2, 3]


def test_an_attempt_that_breaks_leaves_nothing_that_counts(wish: SliceWish) -> None:
    with positions_of(wish) as positions:
        positions.write({1: 0})

    def breaks() -> Iterator[PlacedRow]:
        yield from rows(wish, *range(2_000))
        raise InterruptedError

    with pytest.raises(InterruptedError):
        send(wish, breaks())
    assert send(wish, rows(wish, 1, 2)).records == 2
    assert read(wish, 2) == [1, 2]


def test_an_attempt_that_ends_within_its_transaction_holds_nobody_up(wish: SliceWish) -> None:
    with positions_of(wish) as positions:
        positions.write({1: 0})
        left = confluent.make_producer(
            wish.kafka["bootstrap.servers"], {"transactional.id": f"{wish.job}.{wish.topic}.1"}
        )
        left.init_transactions(WAIT_S)
        left.begin_transaction()
        left.produce(wish.topic, b"left", partition=1)
        left.send_offsets_to_transaction(positions.offsets({1: 1}), positions.group(), WAIT_S)
    with Positions(wish.kafka, wish.job, wish.topic, IDENTITY, stable=False) as unstable:
        assert unstable.read([1]) == {1: 0}
    assert send(wish, rows(wish, 1, 2)).records == 2
    with positions_of(wish) as positions:
        assert positions.read([1]) == {1: 1}
    assert read(wish, 2) == [1, 2]


def test_positions_that_are_gone_or_anothers_are_told(wish: SliceWish) -> None:
    with pytest.raises(PositionError, match="has no position for slice 1"):
        send(wish, rows(wish, 1))
    with positions_of(wish) as positions:
        positions.write({1: 0})
    with (
        positions_of(wish, "another") as positions,
        pytest.raises(PositionError, match="positions of another checkpoint"),
    ):
        positions.read([1])
    assert records.end_offsets(wish.kafka["bootstrap.servers"], wish.topic, partitions=2) == [0, 0]


def test_topics_are_counted(wish: SliceWish) -> None:
    with positions_of(wish) as positions:
        assert positions.partition_count(wish.topic) == 2
        assert positions.partition_count(f"{wish.topic}-none") == 0
    assert not confluent.make_producer(wish.kafka["bootstrap.servers"]).flush(0)
