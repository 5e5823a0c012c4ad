"""Transactions that are aborted from the console."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

import pytest
from confluent_kafka import KafkaException, Producer

from tests.support.console.changes import made, prepared
from tests.support.console.guarded_cluster import GUARDED, guarded_cluster
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import batch
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.client.transactions.hanging import hanging_producers
from wirebroker.client.transactions.producer_states import producers_of
from wirebroker.client.transactions.transactions import DescribedTransaction, describe_transaction
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.changes.kinds import transactions

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.console.model.collector import Collector

PLACE = TopicPartition("payments", 0)


def _begin(bootstrap: str) -> Producer:
    settings = {"bootstrap.servers": bootstrap, "transactional.id": "payer"}
    producer = Producer({**settings, "transaction.timeout.ms": 900_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    for value in (b"one", b"two"):
        producer.produce("payments", value)
    assert producer.flush(30) == 0
    return producer


@contextlib.asynccontextmanager
async def open_transaction(c: Collector) -> AsyncIterator[Producer]:
    """Leave a transaction open, by a client in a thread."""
    producer = await asyncio.to_thread(_begin, c.settings.bootstrap)
    yield producer
    await asyncio.to_thread(producer.purge)


async def hang(c: Collector) -> None:
    """Write a record of a transaction that no coordinator knows, as a late request does."""
    anybody = {
        "transactional_id": None,
        "transaction_timeout_ms": 60_000,
        "producer_id": -1,
        "producer_epoch": -1,
    }
    producer = await c.client.request(ApiKey.INIT_PRODUCER_ID, anybody, at_most=4)
    records = batch(
        b"late",
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        base_sequence=0,
        is_transactional=True,
    )
    body = produce_request({PLACE: records}, transactional_id="gone")
    answer = await c.client.request(ApiKey.PRODUCE, body, at_most=9)
    assert answer.responses[0].partition_responses[0].error_code == 0


async def test_an_open_transaction_is_aborted_and_its_producer_fenced(tmp_path):
    async with guarded_cluster(tmp_path) as c, open_transaction(c) as producer:
        plan = await prepared(c, "abort-transaction", transactional_id="payer")
        assert plan.summary == "Abort the open transaction of payer"
        assert plan.lines[0] == "payments-0: its records from offset 0 on are discarded"
        assert "is fenced" in plan.lines[1]
        assert plan.notes == ("payments-0: at most 2 records now",)
        assert (await describe_transaction(c.client, "payer")).state == "Ongoing"
        assert await plan.apply() == "the transaction of payer is aborted"
        assert (await describe_transaction(c.client, "payer")).started_ms is None
        with pytest.raises(KafkaException, match="fenced"):
            await asyncio.to_thread(producer.commit_transaction, 30)
        with pytest.raises(ChangeError, match="payer has no open transaction: it is Empty"):
            await prepared(c, "abort-transaction", transactional_id="payer")


@pytest.mark.parametrize("state", ["PrepareCommit", "CompleteCommit", "CompleteAbort"])
async def test_an_ended_transaction_that_keeps_its_start_is_not_open(tmp_path, monkeypatch, state):
    async def described(_client: KafkaClient, name: str) -> DescribedTransaction:
        return DescribedTransaction(name, 1, state, 4000, 2, 60_000, 1_000_000, ["payments-0"])

    monkeypatch.setattr(transactions, "describe_transaction", described)
    async with guarded_cluster(tmp_path) as c:
        with pytest.raises(ChangeError, match=f"payer has no open transaction: it is {state}"):
            await prepared(c, "abort-transaction", transactional_id="payer")
        plan = await prepared(c, "terminate-transaction", transactional_id="payer")
        assert (plan.warnings, plan.notes, len(plan.lines)) == ((), (), 1)


async def test_a_producer_is_terminated_with_or_without_a_transaction(tmp_path):
    async with guarded_cluster(tmp_path) as c, open_transaction(c):
        plan = await prepared(c, "terminate-transaction", transactional_id="payer")
        assert plan.warnings == ("its open transaction is aborted",)
        await plan.apply()
        before = await describe_transaction(c.client, "payer")
        plan = await prepared(c, "terminate-transaction", transactional_id="payer")
        assert (plan.warnings, len(plan.lines)) == ((), 1)
        assert await plan.apply() == "the producer of payer is fenced"
        after = await describe_transaction(c.client, "payer")
        assert (after.producer_epoch, after.producer_id) > (
            before.producer_epoch,
            before.producer_id,
        ) or after.producer_id > before.producer_id


async def test_a_transaction_that_its_coordinator_ends_does_not_hang(tmp_path):
    async with guarded_cluster(tmp_path) as c, open_transaction(c):
        assert await hanging_producers(c.client, topic="payments", longer_than_ms=-1) == []
        with pytest.raises(ChangeError, match="does not hang: its coordinator has it"):
            await prepared(
                c, "abort-hanging-transaction", topic="payments", partition=0, start_offset=0
            )


async def test_a_hanging_transaction_is_aborted(tmp_path):
    settings = {**GUARDED, "transaction.partition.verification.enable": "false"}
    async with guarded_cluster(tmp_path, settings) as c:
        await hang(c)
        (found,) = await hanging_producers(c.client, topic="payments", longer_than_ms=-1)
        assert (found.place, found.start_offset) == (PLACE, 0)
        values = {"topic": "payments", "partition": 0, "start_offset": 0}
        plan = await prepared(c, "abort-hanging-transaction", **values)
        assert plan.summary == "Abort the hanging transaction at offset 0 of payments-0"
        assert plan.notes == ("at most 1 record now",)
        await plan.apply()
        assert [row.start_offset for row in await producers_of(c.client, [PLACE])] == [None]
        with pytest.raises(ClientError, match="no open transaction starts at offset 0"):
            await made(c, "abort-hanging-transaction", **values)


@pytest.mark.parametrize("kind", ["abort-transaction", "terminate-transaction"])
async def test_an_unknown_transactional_id_is_refused(tmp_path, kind):
    async with guarded_cluster(tmp_path) as c:
        with pytest.raises(ClientError, match="there is no such transactional id"):
            await prepared(c, kind, transactional_id="nobody's")


@pytest.mark.parametrize(
    ("values", "field"),
    [
        ({"partition": "-1", "start_offset": "0"}, "partition"),
        ({"partition": "0", "start_offset": "x"}, "start_offset"),
    ],
)
async def test_wrong_numbers_are_refused(tmp_path, values, field):
    async with guarded_cluster(tmp_path) as c:
        with pytest.raises(ChangeError, match=r"is not a whole number|a number from 0") as refused:
            await prepared(c, "abort-hanging-transaction", topic="payments", **values)
        assert refused.value.field == field
