"""Connections of clients, and what they use of their quotas, on /metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.http.http_client import ask_http, http_address
from tests.support.http.scrape_pages import HTTP, read_page, scrape, value
from tests.support.protocol.requests import append, create_topic
from tests.support.records.batches import batch
from wirebroker.base.client_metric_names import ACCEPT_RATE, ALL
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.metrics import connection_rows
from wirebroker.metrics.connection_rows import OTHER, sanitized_user

if TYPE_CHECKING:
    from tests.support.protocol.raw_client import RawClient

ALL_DIALECTS = HTTP | {"wirebroker.metrics.dialects": "strimzi,confluent"}
SOFTWARE = "kafka_server_socket_server_metrics_connections_software"


async def introduce(client: RawClient, name: str, version: str) -> None:
    body = {"client_software_name": name, "client_software_version": version}
    assert (await client.ask(ApiKey.API_VERSIONS, 3, body)).error_code == 0


async def set_quota(client: RawClient, **parts: str | None) -> None:
    entity = [
        {"entity_type": kind.replace("_", "-"), "entity_name": name} for kind, name in parts.items()
    ]
    ops = [
        {"key": key, "value": 1000.0, "remove": False}
        for key in ("producer_byte_rate", "request_percentage")
    ]
    body = {"entries": [{"entity": entity, "ops": ops}], "validate_only": False}
    answer = await client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, body)
    assert answer.entries[0].error_code == 0


async def test_connections_are_counted_by_software_listener_and_user(tmp_path):
    async with (
        running(tmp_path, settings=ALL_DIALECTS) as server,
        client_of(server) as first,
        client_of(server) as second,
        client_of(server) as third,
    ):
        await introduce(first, "librdkafka", "2.6.1")
        await introduce(second, "librdkafka", "2.6.1")
        await third.ask(ApiKey.API_VERSIONS, 0, {})
        page = await scrape(server)
    listener = {"listener": "PLAINTEXT"}
    labels = {"clientSoftwareName": "librdkafka", "clientSoftwareVersion": "2.6.1"}
    assert value(page, SOFTWARE, **labels, **listener) == 2
    labels = {"client_software_name": "librdkafka", "client_software_version": "2.6.1"}
    assert value(page, "kafka_server_socketservermetrics_connections", **labels, **listener) == 2
    assert value(page, "wirebroker_connections", **labels, **listener, user="ANONYMOUS") == 2
    unknown = {"clientSoftwareName": "unknown", "clientSoftwareVersion": "unknown"}
    assert value(page, SOFTWARE, **unknown, **listener) == 1


async def test_further_kinds_of_connections_are_counted_together(tmp_path, monkeypatch):
    monkeypatch.setattr(connection_rows, "MOST_CONNECTION_SERIES", 1)
    async with (
        running(tmp_path, settings=HTTP) as server,
        client_of(server) as first,
        client_of(server) as second,
        client_of(server) as third,
    ):
        for number, client in enumerate((first, second, third)):
            await introduce(client, "invented", str(number))
        page = await scrape(server)
    counts = sorted(count for (name, _), count in page.items() if name == SOFTWARE)
    labels = {"clientSoftwareName": OTHER, "clientSoftwareVersion": OTHER}
    assert counts == [1, 2]
    assert value(page, SOFTWARE, listener="PLAINTEXT", **labels) == 2


@pytest.mark.parametrize(
    ("entity", "labels"),
    [
        ({"user": "ANONYMOUS"}, {"user": "ANONYMOUS"}),
        ({"user": None}, {"user": "ANONYMOUS"}),
        ({"client_id": "raw"}, {"clientId": "raw"}),
        ({"user": None, "client_id": None}, {"user": "ANONYMOUS", "clientId": "raw"}),
    ],
    ids=["user", "default-user", "client-id", "defaults-of-both"],
)
async def test_the_use_of_a_quota_has_the_labels_of_kafka(tmp_path, entity, labels):
    async with running(tmp_path, settings=ALL_DIALECTS) as server, client_of(server) as client:
        await set_quota(client, **entity)
        await create_topic(client, "t")
        await append(client, "t", batch(b"x" * 50_000))
        page = await scrape(server)
    rate = value(page, "kafka_server_quota_byte_rate", resource="Produce", **labels)
    # 50 KB in a window of 10 s, of which at least one second has passed.
    assert rate is not None
    assert 4000 < rate <= 50_500
    throttle_ms = value(page, "kafka_server_quota_throttle_time", resource="Produce", **labels)
    assert throttle_ms is not None
    assert 1000 < throttle_ms < 60_000
    assert value(page, "kafka_server_quota_request_time", resource="Request", **labels) is not None
    confluent = {{"clientId": "client_id"}.get(name, name): of for name, of in labels.items()}
    assert value(page, "kafka_server_produce_byte_rate", **confluent) == rate


class LateClock(SystemClock):
    """A clock that is far ahead of the network's, as in test mode."""

    def monotonic(self) -> float:
        return super().monotonic() + 1e6


async def test_new_connections_are_timed_by_the_clock_of_the_network(tmp_path):
    clocks: dict[str, Any] = {"clock": LateClock(), "network_clock": SystemClock()}
    async with running(tmp_path, settings=HTTP, **clocks) as server, client_of(server) as client:
        ops = [{"key": "connection_creation_rate", "value": 1000.0, "remove": False}]
        entity = [{"entity_type": "ip", "entity_name": "127.0.0.1"}]
        body = {"entries": [{"entity": entity, "ops": ops}], "validate_only": False}
        answer = await client.ask(ApiKey.ALTER_CLIENT_QUOTAS, 1, body)
        assert answer.entries[0].error_code == 0
        async with client_of(server):
            page = await scrape(server)
            again = await scrape(server)
    for samples in (page, again):
        rate = value(samples, ACCEPT_RATE, ip="127.0.0.1")
        assert rate is not None
        assert rate > 0


async def test_quota_names_that_are_requested_are_written_in_each_dialect(tmp_path):
    settings = HTTP | {"wirebroker.metrics.dialects": "exporter"}
    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        await set_quota(client, user="ANONYMOUS")
        await create_topic(client, "t")
        await append(client, "t", batch(b"x"))
        name = "kafka_server_quota_byte_rate"
        reply = await ask_http(http_address(server), f"/metrics?name[]={name}")
    assert value(read_page(reply.text), name, resource="Produce", user="ANONYMOUS") is not None


async def test_without_quotas_nothing_is_reported(tmp_path):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        await create_topic(client, "t")
        await append(client, "t", batch(b"x"))
        page = await scrape(server)
    assert [name for name, _ in page if name.startswith("kafka_server_quota_")] == []


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (sorted(ALL), {SOFTWARE, "wirebroker_connections"}),
        ([SOFTWARE], {SOFTWARE}),
        (["process_cpu_seconds_total", SOFTWARE], {SOFTWARE, "process_cpu_seconds_total"}),
        (["no_such_metric"], set()),
    ],
    ids=["of-a-console", "one", "another-too", "unknown"],
)
async def test_a_page_can_be_limited_to_names(tmp_path, names, expected):
    async with running(tmp_path, settings=HTTP) as server, client_of(server) as client:
        await introduce(client, "librdkafka", "2.6.1")
        query = "&".join(f"name[]={name}" for name in names)
        reply = await ask_http(http_address(server), f"/metrics?{query}")
    assert reply.status == 200, reply.text
    assert {name for name, _ in read_page(reply.text)} == expected


@pytest.mark.parametrize(
    ("name", "label"),
    [
        ("anna", "anna"),
        ("CN=a b,OU=é", "CN%3Da%20b%2COU%3D%C3%A9"),
        ("a*~/_-.", "a%2A%7E%2F_-."),
    ],
)
def test_users_are_written_as_kafka_does(name, label):
    assert sanitized_user(name) == label
