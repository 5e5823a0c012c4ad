"""Limits on the number and rate of connections: the counts, without sockets."""

from __future__ import annotations

import pytest

from tests.unit.wirebroker.net.network_server import serve
from wirebroker.config import Config
from wirebroker.net.connection_quotas import ConnectionQuotas, CreationRate
from wirebroker.net.settings import NetworkSettings

TWO = {
    "listeners": "INSIDE://:1,OUTSIDE://:2",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
}


def quotas(settings: dict[str, str], *, max_sockets: int = 1000) -> ConnectionQuotas:
    return ConnectionQuotas(NetworkSettings.from_config(Config(settings)), max_sockets=max_sockets)


def delays(limit: int, times: list[float]) -> list[float]:
    rate = CreationRate(samples=11, sample_s=1)
    return [round(rate.delay_s(now, limit), 3) for now in times]


def test_burst_of_ten_seconds_is_allowed() -> None:
    assert delays(2, [5.0] * 22) == [0.0] * 20 + [0.5, 1.0]


def test_rate_below_the_limit_never_waits() -> None:
    assert set(delays(2, [number / 1.9 for number in range(100)])) == {0.0}


def test_nobody_waits_longer_than_a_second() -> None:
    assert delays(1, [0.0] * 100)[-1] == 1.0


def test_with_a_limit_of_zero_all_wait_a_second() -> None:
    assert delays(0, [0.0, 5.0]) == [1.0, 1.0]


def test_connections_eleven_seconds_ago_do_not_count() -> None:
    assert delays(1, [0.0] * 10 + [11.0]) == [0.0] * 11


def test_rates_use_the_configured_samples() -> None:
    q = quotas(
        {
            "max.connection.creation.rate": "2",
            "quota.window.num": "3",
            "quota.window.size.seconds": "5",
        }
    )
    waits = [round(q.delay_s("PLAINTEXT", 100.0), 3) for _ in range(40)]
    assert waits[:21] == [0.0] * 20 + [0.5]
    assert waits[-1] == 5.0


def test_connection_limits_apply_per_listener_and_in_total() -> None:
    q = quotas(
        TWO | {"max.connections": "3", "listener.name.outside.max.connections": "1"},
    )
    q.opened("OUTSIDE", "a")
    assert not q.has_room("OUTSIDE")
    assert q.has_room("INSIDE")
    q.opened("INSIDE", "a")
    q.opened("INSIDE", "b")
    assert not q.has_room("INSIDE")
    q.check(3)
    q.closed("OUTSIDE", "a")
    assert q.has_room("OUTSIDE")
    q.check(2)


def test_inter_broker_listener_ignores_the_total_limit() -> None:
    q = quotas(TWO | {"max.connections": "2", "inter.broker.listener.name": "INSIDE"})
    q.opened("OUTSIDE", "a")
    q.opened("OUTSIDE", "b")
    assert not q.has_room("OUTSIDE")
    assert q.has_room("INSIDE")
    q.opened("INSIDE", "c")
    assert q.excess() == 1
    assert q.may_be_closed("OUTSIDE")
    assert not q.may_be_closed("INSIDE")


def test_total_limit_applies_to_the_only_listener() -> None:
    q = quotas({"max.connections": "1", "inter.broker.listener.name": "PLAINTEXT"})
    q.opened("PLAINTEXT", "a")
    assert not q.has_room("PLAINTEXT")


def test_descriptor_limit_applies_even_to_inter_broker_listener() -> None:
    q = quotas(TWO | {"inter.broker.listener.name": "INSIDE"}, max_sockets=1)
    q.opened("OUTSIDE", "a")
    assert not q.has_room("INSIDE")


def test_creation_rates_apply_per_listener_and_in_total() -> None:
    q = quotas(
        TWO
        | {
            "max.connection.creation.rate": "2",
            "listener.name.outside.max.connection.creation.rate": "1",
        },
    )
    assert [q.delay_s("OUTSIDE", 0.0) for _ in range(11)] == [0.0] * 10 + [1.0]
    # INSIDE alone would have all 20, but 11 were OUTSIDE's.
    assert [q.delay_s("INSIDE", 0.0) > 0 for _ in range(10)] == [False] * 9 + [True]


@pytest.mark.parametrize(
    ("overrides", "host", "count"),
    [
        ("10.0.0.1:2", "10.0.0.1", 2),
        ("::1:2", "::1", 2),
        ("0:0::1:2", "::1", 2),
        ("::ffff:10.0.0.1:2", "10.0.0.1", 2),
    ],
)
def test_address_may_have_its_own_limit(overrides: str, host: str, count: int) -> None:
    q = quotas({"max.connections.per.ip": "1", "max.connections.per.ip.overrides": overrides})
    q.opened("PLAINTEXT", "other")
    assert q.is_too_many_of("other")
    for _ in range(count):
        assert not q.is_too_many_of(host)
        q.opened("PLAINTEXT", host)
    assert q.is_too_many_of(host)


def test_host_name_limit_applies_once_its_address_is_known() -> None:
    config = Config({"max.connections.per.ip.overrides": "somewhere:1,10.0.0.1:2"})
    for addresses, expected in (
        ({}, {"10.0.0.1": 2}),
        ({"somewhere": "10.0.0.7"}, {"10.0.0.7": 1, "10.0.0.1": 2}),
    ):
        settings = NetworkSettings.from_config(config, addresses)
        assert settings.max_connections_per_ip_overrides == expected


def test_address_rate_applies_in_any_notation() -> None:
    for spelling in ("::1", "0:0:0:0:0:0:0:1", "::0001", "[::1]"):
        q = quotas({})
        q.use_rates({(("ip", spelling),): {"connection_creation_rate": 1.0}})
        assert [q.address_delay_s("::1", 0.0) > 0 for _ in range(11)] == [False] * 10 + [True]
        assert not any(q.address_delay_s("::2", 0.0) for _ in range(20))


async def test_throttled_address_uses_few_descriptors() -> None:
    """Otherwise logs could not be opened, which takes their directory offline."""
    async with serve() as server:
        server.table.quotas.use_rates({(("ip", None),): {"connection_creation_rate": 0.001}})
        peers = [server.peer() for _ in range(100)]
        await server.until(lambda: server.table.metrics.connections_throttled == 100)
        assert 0 < len(server.listener._late) <= 32
        for peer in peers:
            peer.close()
