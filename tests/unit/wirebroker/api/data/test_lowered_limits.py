"""Records that were stored before a limit was lowered stay readable."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

NAME = "max.decompressed.message.bytes"


async def lower(client: RawClient, value: str) -> None:
    change = {"name": NAME, "config_operation": 0, "value": value}
    resource = {"resource_type": 2, "resource_name": "t", "configs": [change]}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    assert answer.responses[0].error_code == ErrorCode.NONE


async def offset_at(client: RawClient, timestamp_ms: int) -> int:
    partition = {"partition_index": 0, "current_leader_epoch": -1, "timestamp": timestamp_ms}
    topics = [{"name": "t", "partitions": [partition]}]
    request = {"replica_id": -1, "isolation_level": 0, "topics": topics}
    answer = await client.ask(ApiKey.LIST_OFFSETS, 7, request)
    result = answer.topics[0].partitions[0]
    assert result.error_code == ErrorCode.NONE
    return int(result.offset)


async def test_time_lookup_reads_records_above_the_lowered_size_limit(
    tmp_path: Path,
) -> None:
    """Apache Kafka 4.4.0 returns INVALID_RECORD (docs/compatibility.md)."""
    large = batch(b"x", bytes(5000), codec=Codec.GZIP)
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 1)
        assert await append(client, "t", large) == 0
        await lower(client, "100")
        with pytest.raises(AssertionError, match="error_code=87"):
            await append(client, "t", large)
        assert await offset_at(client, TIMESTAMP_MS + 1) == 1
        assert await offset_at(client, -3) == 1  # the largest timestamp
