"""OffsetForLeaderEpoch over a socket: the ends of epochs, also after restarts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient


async def end_of(
    client: RawClient, epoch: int, *, version: int = 4, current: int = -1, partition: int = 0
) -> tuple[int, int, int]:
    requested = {"partition": partition, "leader_epoch": epoch, "current_leader_epoch": current}
    request = {"replica_id": -1, "topics": [{"topic": "t", "partitions": [requested]}]}
    answer = await client.ask(ApiKey.OFFSET_FOR_LEADER_EPOCH, version, request)
    (result,) = answer.topics[0].partitions
    return result.error_code, result.leader_epoch, result.end_offset


@pytest.mark.parametrize("version", [2, 3, 4])
async def test_current_epoch_ends_at_the_log_end(tmp_path, version):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        assert await end_of(client, 0, version=version) == (0, 0, 0)
        await append(client, "t", batch(b"a", b"b"))
        assert await end_of(client, 0, version=version) == (0, 0, 2)
        assert await end_of(client, 1, version=version) == (0, -1, -1)
        assert await end_of(client, -1, version=version) == (0, -1, -1)


async def test_errors_are_reported_per_partition(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        unknown = await end_of(client, 0, partition=5)
        assert unknown == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, -1, -1)
        future = await end_of(client, 0, current=7)
        assert future == (ErrorCode.UNKNOWN_LEADER_EPOCH, -1, -1)


async def test_epoch_seen_by_a_consumer_stays_valid_after_a_restart(tmp_path):
    """A consumer at the end of a quiet partition must not find its position diverged."""
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"a"))
    for _ in range(2):
        async with running(tmp_path) as server, client_of(server) as client:
            partitions, _missing = broker_of(server).replicas.find("t", b"", by_id=False)
            epoch = partitions[0].leader_epoch
            assert await end_of(client, epoch) == (0, epoch, 1)
            assert await end_of(client, 0) == (0, 0, 1)
            if epoch:
                fenced = await end_of(client, 0, current=epoch - 1)
                assert fenced[0] == ErrorCode.FENCED_LEADER_EPOCH
