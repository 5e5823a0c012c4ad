"""The clients that push metrics to one broker: changed subscriptions, and how many are kept."""

from __future__ import annotations

from typing import Any

import pytest

from tests.support.coordinators.kit import one_broker
from tests.support.records.clocks import HandClock
from wirebroker.base.clock import Slices, in_one_go
from wirebroker.client_metrics import client_metrics
from wirebroker.client_metrics.client_metrics import ClientMetrics
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config
from wirebroker.coordinator.client_metrics.client_instance import ClientInstance, Push
from wirebroker.coordinator.controller.image.cluster_image import ResourceType, config_record
from wirebroker.coordinator.controller.image.image_change import change_between
from wirebroker.request.request import Request
from wirebroker.request.session import Session

# A gauge named "a".
GAUGE = bytes.fromhex("0a14121212100a01612a0b0a0921000000000000f03f")
EMPTY = one_broker()


def subscribed(**configs: str) -> Any:
    kind = ResourceType.CLIENT_METRICS
    return one_broker(
        *(config_record(kind, "s", name.replace("_", "."), text) for name, text in configs.items())
    )


class Fleet:
    """Clients of one broker."""

    def __init__(self) -> None:
        self.clock = HandClock()
        self.metrics = ClientMetrics(Config({"log.dirs": "data"}), self.clock)

    def connect(self, client_id: str = "c") -> Request:
        session = Session(
            connection_id="c",
            peer="10.0.0.7:41000",
            listener_name="PLAINTEXT",
            local_host="here",
            local_port=9092,
        )
        key = ApiKey.PUSH_TELEMETRY
        return Request(key, 0, 1, client_id, memoryview(b""), 0, session)

    def get(self, request: Request, instance: int) -> ClientInstance | ErrorCode:
        return in_one_go(self.metrics.get(request, bytes([instance]) * 16))

    async def push(self, request: Request, client: ClientInstance) -> ErrorCode:
        push = Push(client.subscription.subscription_id, 0, len(GAUGE), is_terminating=False)
        begun = in_one_go(self.metrics.begin_push(request, client.instance_id, push))
        assert begun is client, begun
        return await self.metrics.read_push(client, 0, GAUGE, Slices(self.clock))


def instance_of(result: ClientInstance | ErrorCode) -> ClientInstance:
    assert isinstance(result, ClientInstance), result
    return result


def test_a_client_without_an_id_gets_one() -> None:
    fleet = Fleet()
    ids = {instance_of(fleet.get(fleet.connect(), 0)).instance_id for _ in range(3)}
    assert len(ids) == 3
    assert bytes(16) not in ids


async def test_a_changed_subscription_applies_from_the_next_request() -> None:
    fleet = Fleet()
    request = fleet.connect("billing")
    first = instance_of(fleet.get(request, 7))
    assert first.subscription.metrics == ()
    image = subscribed(metrics="a", match="client_id=bill.*,client_source_address=10\\..*")
    await fleet.metrics.apply(change_between(EMPTY, image), image)
    assert instance_of(fleet.get(request, 7)).subscription.metrics == ("a",)
    assert instance_of(fleet.get(fleet.connect("other"), 8)).subscription.metrics == ()
    await fleet.metrics.apply(change_between(image, EMPTY), EMPTY)
    assert instance_of(fleet.get(request, 7)).subscription.metrics == ()


async def test_long_client_ids_are_cut() -> None:
    fleet = Fleet()
    request = fleet.connect("c" * 30_000)
    client = instance_of(fleet.get(request, 7))
    assert client.attributes["client_id"] == "c" * 200
    assert await fleet.push(request, client) is ErrorCode.NONE
    ((key, _),) = fleet.metrics.series.series()
    assert dict(key.labels)["client_id"] == "c" * 200


async def test_an_unusable_subscription_is_ignored(caplog: pytest.LogCaptureFixture) -> None:
    fleet = Fleet()
    fleet.metrics.load(subscribed(metrics="a", match="nonsense"))
    assert instance_of(fleet.get(fleet.connect(), 7)).subscription.metrics == ()
    assert "ignoring client metrics s: INVALID_CONFIG" in caplog.text


async def test_series_end_with_the_connection() -> None:
    fleet = Fleet()
    request = fleet.connect()
    client = instance_of(fleet.get(request, 7))
    assert await fleet.push(request, client) is ErrorCode.NONE
    assert len(fleet.metrics.series) == 1
    request.session.end()
    in_one_go(fleet.metrics.remove_gone())
    assert (len(fleet.metrics), len(fleet.metrics.series)) == (0, 0)
    # A push that was read in the meantime is not stored.
    assert await fleet.metrics.read_push(client, 0, GAUGE, Slices(fleet.clock)) is ErrorCode.NONE
    assert len(fleet.metrics.series) == 0


async def test_series_end_after_three_intervals() -> None:
    fleet = Fleet()
    request = fleet.connect()
    await fleet.push(request, instance_of(fleet.get(request, 7)))
    fleet.clock.passed_ms += 3 * 300_000 - 1
    in_one_go(fleet.metrics.remove_gone())
    assert len(fleet.metrics.series) == 1
    fleet.clock.passed_ms += 1
    in_one_go(fleet.metrics.remove_gone())
    assert len(fleet.metrics.series) == 0


async def test_new_clients_replace_the_least_recently_used(monkeypatch: Any) -> None:
    monkeypatch.setattr(client_metrics, "_MOST_CLIENTS", 3)
    fleet = Fleet()
    requests = [fleet.connect() for _ in range(3)]
    clients = [instance_of(fleet.get(request, 7 + n)) for n, request in enumerate(requests)]
    for request, client in zip(requests, clients, strict=True):
        await fleet.push(request, client)
    fleet.clock.passed_ms += 300_000
    await fleet.push(requests[0], clients[0])
    fleet.get(fleet.connect(), 99)
    assert len(fleet.metrics) <= 3
    kept = {client.instance_id for client in fleet.metrics._clients.values()}
    assert clients[0].instance_id in kept
    assert clients[1].instance_id not in kept


async def test_one_connection_cannot_replace_the_clients_of_others(monkeypatch: Any) -> None:
    monkeypatch.setattr(client_metrics, "_MOST_CLIENTS", 30)
    fleet = Fleet()
    other = fleet.connect()
    client = instance_of(fleet.get(other, 200))
    request = fleet.connect()
    for number in range(1, 100):
        fleet.get(request, number)
    assert len(fleet.metrics) == 17
    assert await fleet.push(other, client) is ErrorCode.NONE
    request.session.end()
    in_one_go(fleet.metrics.remove_gone())
    assert len(fleet.metrics) == len(fleet.metrics._by_owner) == 1


def test_gone_clients_make_room_without_a_scrape() -> None:
    fleet = Fleet()
    for number in range(1, 50):
        request = fleet.connect()
        fleet.get(request, number)
        request.session.end()
    assert len(fleet.metrics) <= 2


@pytest.mark.parametrize("reserved", [bytes(16), bytes(15) + b"\x01"])
def test_a_push_with_a_reserved_id_is_refused(reserved: bytes) -> None:
    fleet = Fleet()
    push = Push(0, 0, 0, is_terminating=False)
    steps = fleet.metrics.begin_push(fleet.connect(), reserved, push)
    assert in_one_go(steps) is ErrorCode.INVALID_REQUEST
    assert len(fleet.metrics) == 0
