"""`wirebroker dlq` with a broker of the testing kit."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from confluent_kafka import Producer

from tests.support.cli.verbs import Verbs
from wirebroker.base.dead_letter_headers import dead_letter_headers
from wirebroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import Iterator

LETTERS = "orders.dead-letters"


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker() as running:
        running.create_topic("orders")
        running.create_topic(LETTERS)
        yield running


@pytest.fixture
def verbs(broker: Broker, capsys: pytest.CaptureFixture[str]) -> Verbs:
    return Verbs(broker.bootstrap_servers, capsys)


def add_letter(broker: Broker, offset: int, topic: str = "orders") -> None:
    headers = dead_letter_headers(
        topic=topic, partition=0, offset=offset, group="g", delivery_count=1, message="no price"
    )
    broker.produce(LETTERS, f"letter {offset}", headers=headers)


@pytest.mark.parametrize("flags", [(), ("--yes",)])
def test_a_purge_refuses_ordinary_records(broker: Broker, verbs: Verbs, flags: tuple[str]) -> None:
    add_letter(broker, 0)
    broker.produce(LETTERS, "an order", headers={"trace": "a1"})
    result = verbs.run("dlq", "purge", LETTERS, *flags)
    assert result.status == 1
    assert f"record 1 of {LETTERS}-0 is not a dead letter" in result.err
    assert "topic trim" in result.err
    assert len(broker.records(LETTERS)) == 2


def test_a_purge_looks_only_at_what_it_deletes(broker: Broker, verbs: Verbs) -> None:
    broker.clock.freeze()
    add_letter(broker, 0)
    broker.clock.advance(hours=2)
    broker.produce(LETTERS, "an order")
    limit = round(broker.clock.now_ms() - 3_600_000)
    verbs.do("dlq", "purge", LETTERS, "--before", str(limit), "--yes")
    assert [record.value for record in broker.records(LETTERS)] == [b"an order"]


def test_a_purge_keeps_the_records_of_an_open_transaction(broker: Broker, verbs: Verbs) -> None:
    add_letter(broker, 0)
    servers = broker.bootstrap_servers
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "t"})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(LETTERS, b"an order", partition=0)
    assert producer.flush(30) == 0
    limit = broker.clock.now_ms() + 3_600_000
    (row,) = verbs.json("dlq", "purge", LETTERS, "--before", str(limit), "--yes")["partitions"]
    producer.commit_transaction(30)
    assert row["records"] == 1
    assert [record.value for record in broker.records(LETTERS)] == [b"an order"]


def test_letters_of_pipelines_are_purged(broker: Broker, verbs: Verbs) -> None:
    broker.produce(LETTERS, "{", headers={"reason": "no JSON", "file": "a.json", "job": "ingest"})
    verbs.do("dlq", "purge", LETTERS, "--yes")
    assert broker.records(LETTERS) == []


def test_a_dry_run_counts_the_letters_that_were_not_redriven(broker: Broker, verbs: Verbs) -> None:
    for offset in range(5):
        add_letter(broker, offset)
    assert verbs.json("dlq", "redrive", LETTERS) == {"matching": 5}
    verbs.do("dlq", "redrive", LETTERS, "-n", "2", "--yes")
    assert verbs.json("dlq", "redrive", LETTERS) == {"matching": 3}
    assert verbs.json("dlq", "redrive", LETTERS, "-n", "2") == {"matching": 2}
    add_letter(broker, 5)
    assert "4 dead letters match" in verbs.do("dlq", "redrive", LETTERS).out
    verbs.do("dlq", "redrive", LETTERS, "--yes")
    assert verbs.json("dlq", "redrive", LETTERS) == {"matching": 0}
    assert len(broker.records("orders")) == 6


@pytest.mark.parametrize("flags", [(), ("--yes",)])
@pytest.mark.parametrize(
    ("target", "reason"),
    [("__consumer_offsets", "internal topic"), ("missing", "there is no such topic")],
)
def test_a_redrive_to_an_unusable_topic_is_refused(
    broker: Broker, verbs: Verbs, target: str, reason: str, flags: tuple[str]
) -> None:
    add_letter(broker, 0)
    result = verbs.run("dlq", "redrive", LETTERS, "--to", target, *flags)
    assert result.status == 1
    assert f"cannot redrive to {target}" in result.err
    assert reason in result.err
    assert target not in broker.topics()


def test_a_dry_run_names_a_deleted_topic(broker: Broker, verbs: Verbs) -> None:
    add_letter(broker, 0, topic="deleted")
    result = verbs.run("dlq", "redrive", LETTERS)
    assert result.status == 1
    assert "cannot redrive to deleted: there is no such topic" in result.err
