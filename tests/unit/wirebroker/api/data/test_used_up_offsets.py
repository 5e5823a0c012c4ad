"""A log that ends at 2^63 - 1, from a stray segment or a checkpoint: every request gets a response.

As in Apache Kafka 4.4.0, ListOffsets returns offsets and Produce UNKNOWN_SERVER_ERROR.
"""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.protocol.requests import append, create_topic, produce
from tests.support.records.batches import batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

END = (1 << 63) - 1
NAME = {"name": "t"}


def stray_segment(data):
    (data / "t-0" / f"{END:020d}.log").write_bytes(b"")


def log_start(data):
    (data / "log-start-offset-checkpoint").write_text(f"0\n1\nt 0 {END}\n")


REQUESTS = {
    "earliest": (ApiKey.LIST_OFFSETS, 7, {"timestamp": -2}),
    "latest": (ApiKey.LIST_OFFSETS, 7, {"timestamp": -1}),
    "largest time": (ApiKey.LIST_OFFSETS, 7, {"timestamp": -3}),
    "by time": (ApiKey.LIST_OFFSETS, 7, {"timestamp": 0}),
    "last epoch": (ApiKey.OFFSET_FOR_LEADER_EPOCH, 4, {"leader_epoch": 0}),
    "fetch": (ApiKey.FETCH, 12, {"fetch_offset": END, "partition_max_bytes": 1 << 20}),
    "delete": (ApiKey.DELETE_RECORDS, 2, {"offset": -1}),
    "producers": (ApiKey.DESCRIBE_PRODUCERS, 0, None),
}


def body_of(key, fields):
    index = "partition_index"
    if key in {ApiKey.FETCH, ApiKey.OFFSET_FOR_LEADER_EPOCH}:
        index = "partition"
    if key is ApiKey.DESCRIBE_PRODUCERS:
        return {"topics": [{**NAME, "partition_indexes": [0]}]}
    topic = {"topic": "t"} if index == "partition" else NAME
    topics = [{**topic, "partitions": [{index: 0, **fields}]}]
    other_fields: dict[ApiKey, dict[str, Any]] = {
        ApiKey.LIST_OFFSETS: {"replica_id": -1, "isolation_level": 0},
        ApiKey.OFFSET_FOR_LEADER_EPOCH: {"replica_id": -1},
        ApiKey.FETCH: {
            "replica_id": -1,
            "max_wait_ms": 0,
            "min_bytes": 0,
            "session_epoch": -1,
            "forgotten_topics_data": [],
            "rack_id": "",
        },
        ApiKey.DELETE_RECORDS: {"timeout_ms": 5000},
    }
    return {"topics": topics, **other_fields[key]}


@pytest.mark.parametrize("spoil", [stray_segment, log_start])
async def test_exhausted_log_refuses_appends_and_serves_other_requests(spoil, tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t")
        for _ in range(3):
            await append(client, "t", batch(b"x"))
    spoil(tmp_path)
    for _ in range(2):
        async with running(tmp_path) as server, client_of(server) as client:
            for key, version, fields in REQUESTS.values():
                await client.ask(key, version, body_of(key, fields))
            for _ in range(2):
                refused = await produce(client, "t", batch(b"x"))
                assert refused.error_code == ErrorCode.UNKNOWN_SERVER_ERROR
            answer = await client.ask(
                ApiKey.LIST_OFFSETS, 7, body_of(ApiKey.LIST_OFFSETS, {"timestamp": -1})
            )
            (latest,) = answer.topics[0].partitions
            assert (latest.error_code, latest.offset) == (0, END)
