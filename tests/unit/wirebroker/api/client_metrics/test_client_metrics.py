"""Clients that push metrics to a running broker, which shows them on its page."""

from __future__ import annotations

import asyncio
import gzip
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.http.scrape_pages import HTTP, scrape, value
from tests.support.records.clocks import MovedClock
from tests.support.records.otlp_messages import counter, gauge, metrics_data
from tests.support.tools.waiting import until
from wirebroker.base.clock import finish
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.compression import compress

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

ENABLED = {**HTTP, "wirebroker.client.metrics": "true"}
RESOURCE = 16
SENT = "wirebroker_client_producer_record_send_total"
ZERO_ID = bytes(16)


async def subscribe(client: RawClient, **configs: str) -> None:
    entries = [
        {"name": name.replace("_", "."), "config_operation": 0, "value": text}
        for name, text in configs.items()
    ]
    resource = {"resource_type": RESOURCE, "resource_name": "all", "configs": entries}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    assert answer.responses[0].error_code == 0


async def subscription(client: RawClient, instance_id: bytes = ZERO_ID) -> Any:
    body = {"client_instance_id": instance_id}
    return await client.ask(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, 0, body)


async def push(client: RawClient, own: Any, data: bytes, **fields: Any) -> ErrorCode:
    body = {
        "client_instance_id": own.client_instance_id,
        "subscription_id": own.subscription_id,
        "metrics": data,
        **fields,
    }
    answer = await client.ask(ApiKey.PUSH_TELEMETRY, 0, body)
    return ErrorCode(answer.error_code)


def sent(count: float) -> bytes:
    name = "org.apache.kafka.producer.record.send.total"
    return metrics_data([counter(name, count, {"topic": "t"}), gauge("depth", 4)], {"rack": "r"})


async def test_pushed_metrics_are_shown_until_the_client_leaves(tmp_path: Path) -> None:
    clock = MovedClock()
    async with running(tmp_path, settings=ENABLED, clock=clock) as server:
        async with client_of(server) as client:
            await subscribe(client, metrics="org.apache.kafka.producer.", interval_ms="1000")
            own = await subscription(client)
            assert own.requested_metrics == ["org.apache.kafka.producer."]
            assert own.push_interval_ms == 1_000
            assert await push(client, own, sent(2)) is ErrorCode.NONE
            clock.passed_ms += 1_000
            packed = compress(Codec.ZSTD, sent(3))
            assert await push(client, own, packed, compression_type=4) is ErrorCode.NONE
            page = await scrape(server)
            labels = {
                "client_id": "raw",
                "client_instance_id": uuid_text(own.client_instance_id),
                "client_software_name": "unknown",
                "rack": "r",
            }
            assert value(page, SENT, topic="t", **labels) == 5
            assert value(page, "wirebroker_client_depth", **labels) == 4
            assert value(page, "kafka_server_client_metrics_instance_count") == 1
            assert value(page, "wirebroker_telemetry_series") == 2
        metrics = broker_of(server).client_metrics
        assert metrics is not None

        def is_gone() -> bool:
            finish(metrics.remove_gone())
            return len(metrics) == 0

        await until(is_gone)
        page = await scrape(server)
        assert not [name for name, _ in page if name.startswith("wirebroker_client_")]
        assert value(page, "kafka_server_client_metrics_instance_count") == 0


@pytest.mark.parametrize(
    ("fields", "data", "error"),
    [
        ({"compression_type": 1}, gzip.compress(bytes(1 << 24)), ErrorCode.INVALID_RECORD),
        ({"compression_type": 4}, b"no zstd", ErrorCode.INVALID_RECORD),
        ({}, b"\x0a\x05ab", ErrorCode.INVALID_RECORD),
        ({}, bytes((1 << 20) + 1), ErrorCode.TELEMETRY_TOO_LARGE),
        ({"subscription_id": 1}, b"", ErrorCode.UNKNOWN_SUBSCRIPTION_ID),
        ({"client_instance_id": ZERO_ID}, b"", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_bad_pushes_get_kafkas_error_code(
    tmp_path: Path, fields: dict[str, Any], data: bytes, error: ErrorCode
) -> None:
    async with running(tmp_path, settings=ENABLED) as server, client_of(server) as client:
        own = await subscription(client)
        assert await push(client, own, data, **fields) is error
        metrics = broker_of(server).client_metrics
        assert metrics is not None
        assert metrics.unreadable == (error is ErrorCode.INVALID_RECORD)
        assert len(metrics.series) == 0


async def test_subscriptions_survive_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, settings=ENABLED) as server, client_of(server) as client:
        await subscribe(client, metrics="*", interval_ms="5000")
    async with running(tmp_path, settings=ENABLED) as server, client_of(server) as client:
        own = await subscription(client)
        assert (own.requested_metrics, own.push_interval_ms) == (["*"], 5_000)


async def test_apis_are_advertised_and_served_only_if_enabled(tmp_path: Path) -> None:
    keys = {ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, ApiKey.PUSH_TELEMETRY}
    for settings, expected in ((HTTP, set[ApiKey]()), (ENABLED, keys)):
        async with running(tmp_path, settings=settings) as server, client_of(server) as client:
            answer = await client.ask(ApiKey.API_VERSIONS, 0, {})
            assert {api.api_key for api in answer.api_keys} & keys == expected
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        with pytest.raises(asyncio.IncompleteReadError):
            await subscription(client)
