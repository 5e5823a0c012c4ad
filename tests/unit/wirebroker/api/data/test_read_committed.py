"""read_committed over a socket: the last stable offset bound and aborted transactions."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic, fetch_request
from tests.support.records.batches import TIMESTAMP_MS, batch
from tests.support.tools.waiting import until
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient
    from wirebroker.broker.server import Server
    from wirebroker.replica.partition import Partition


def partition_of(server: Server) -> Partition:
    partitions, _ = broker_of(server).replicas.find("tx", b"", by_id=False)
    return partitions[0]


def send(partition: Partition, producer_id: int, sequence: int = 0) -> None:
    guard = partition.log.producer_state.begin_verification(
        producer_id,
        sequence=sequence,
        producer_epoch=0,
        supports_epoch_bump=False,
        now_ms=TIMESTAMP_MS,
    )
    records = batch(
        b"v",
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        is_transactional=True,
    )
    partition.append(
        memoryview(bytearray(records)), now_ms=TIMESTAMP_MS, request_version=13, guard=guard
    )


def end(partition: Partition, producer_id: int, *, is_commit: bool = False) -> None:
    partition.append_marker(
        producer_id=producer_id,
        producer_epoch=0,
        coordinator_epoch=0,
        is_commit=is_commit,
        transaction_version=0,
        now_ms=TIMESTAMP_MS,
    )


async def fetch(client: RawClient, version: int = 11, offset: int = 0, **fields: Any) -> Any:
    request = fetch_request({("tx", 0): offset}, **fields)
    answer = await client.ask(ApiKey.FETCH, version, request)
    [topic] = answer.responses
    return topic.partitions[0]


async def end_offset(client: RawClient, isolation_level: int) -> int:
    partitions = [{"partition_index": 0, "timestamp": -1}]
    request = {
        "replica_id": -1,
        "isolation_level": isolation_level,
        "topics": [{"name": "tx", "partitions": partitions}],
    }
    answer = await client.ask(ApiKey.LIST_OFFSETS, 2, request)
    return answer.topics[0].partitions[0].offset


@pytest.mark.parametrize("version", [4, 11, 12])
async def test_an_open_transaction_hides_what_follows(tmp_path: Path, version: int):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "tx")
        await append(client, "tx", batch(b"plain"))
        partition = partition_of(server)
        send(partition, 5)
        await append(client, "tx", batch(b"behind"))
        everything = await fetch(client, version)
        assert (everything.high_watermark, everything.last_stable_offset) == (3, 1)
        assert everything.aborted_transactions is None
        committed = await fetch(client, version, isolation_level=1)
        assert committed.aborted_transactions == []
        assert len(committed.records) == len(batch(b"plain")) < len(everything.records)
        assert [await end_offset(client, level) for level in (0, 1)] == [3, 1]
        end(partition, 5)
        committed = await fetch(client, version, isolation_level=1)
        assert [(a.producer_id, a.first_offset) for a in committed.aborted_transactions] == [(5, 1)]
        assert committed.last_stable_offset == await end_offset(client, 1) == 4
        after_marker = await fetch(client, version, offset=4, isolation_level=1)
        assert after_marker.aborted_transactions == []
        assert (await fetch(client, version)).aborted_transactions is None


async def test_a_committed_transaction_is_not_listed(tmp_path: Path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "tx")
        partition = partition_of(server)
        send(partition, 5)
        end(partition, 5, is_commit=True)
        assert (await fetch(client, isolation_level=1)).aborted_transactions == []


async def test_fetch_session_gets_aborted_transactions_with_records(tmp_path: Path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "tx")
        partition = partition_of(server)
        send(partition, 5)
        opened = await client.ask(
            ApiKey.FETCH,
            11,
            fetch_request({("tx", 0): 0}, session=(0, 0), isolation_level=1),
        )
        assert opened.session_id
        assert opened.responses[0].partitions[0].aborted_transactions == []
        end(partition, 5)
        again = fetch_request({}, session=(opened.session_id, 1), isolation_level=1)
        [topic] = (await client.ask(ApiKey.FETCH, 11, again)).responses
        assert topic.partitions[0].aborted_transactions[0].producer_id == 5


async def test_end_of_transaction_wakes_read_committed_fetches(tmp_path: Path):
    async with (
        running(tmp_path) as server,
        client_of(server) as client,
    ):
        await create_topic(client, "tx")
        partition = partition_of(server)
        send(partition, 5)
        waiting = asyncio.create_task(fetch(client, isolation_level=1, max_wait_ms=20_000))
        await until(lambda: partition._watchers)
        end(partition, 5)
        assert (await waiting).records


async def test_open_transaction_is_known_after_a_clean_restart(tmp_path: Path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "tx")
        send(partition_of(server), 5)
    async with running(tmp_path) as server, client_of(server) as client:
        assert not partition_of(server).log.producer_state.is_read
        assert (await fetch(client, isolation_level=1)).last_stable_offset == 0
        assert partition_of(server).log.producer_state.is_read


async def test_damaged_snapshot_is_rebuilt_in_a_thread_while_clients_retry(tmp_path: Path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "tx")
        send(partition_of(server), 5)
        path = Path(partition_of(server).log.producer_state.snapshots.path(1))
    path.write_bytes(b"damaged")  # noqa: ASYNC240 - nothing else runs here
    async with running(tmp_path) as server, client_of(server) as client:
        state = partition_of(server).log.producer_state
        first = await fetch(client, isolation_level=1)
        assert first.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await until(lambda: state.is_read)
        assert (await fetch(client, isolation_level=1)).last_stable_offset == 0
        assert list(state.producers) == [5]
