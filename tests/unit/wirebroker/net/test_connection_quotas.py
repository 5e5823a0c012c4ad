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


def test_ten_seconds_worth_may_come_at_once() -> None:
    assert delays(2, [5.0] * 22) == [0.0] * 20 + [0.5, 1.0]


def test_who_comes_more_slowly_never_waits() -> None:
    assert set(delays(2, [number / 1.9 for number in range(100)])) == {0.0}


def test_nobody_waits_longer_than_a_second() -> None:
    assert delays(1, [0.0] * 100)[-1] == 1.0


def test_with_a_limit_of_none_all_wait_a_second() -> None:
    assert delays(0, [0.0, 5.0]) == [1.0, 1.0]


def test_what_came_eleven_seconds_ago_is_forgotten() -> None:
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


def test_a_listener_has_its_own_limit_and_all_of_them_one() -> None:
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


def test_the_listener_between_brokers_does_not_wait_for_the_others() -> None:
    q = quotas(TWO | {"max.connections": "2", "inter.broker.listener.name": "INSIDE"})
    q.opened("OUTSIDE", "a")
    q.opened("OUTSIDE", "b")
    assert not q.has_room("OUTSIDE")
    assert q.has_room("INSIDE")
    q.opened("INSIDE", "c")
    assert q.excess() == 1
    assert q.may_be_closed("OUTSIDE")
    assert not q.may_be_closed("INSIDE")


def test_the_only_listener_is_held_to_the_limit_of_all() -> None:
    q = quotas({"max.connections": "1", "inter.broker.listener.name": "PLAINTEXT"})
    q.opened("PLAINTEXT", "a")
    assert not q.has_room("PLAINTEXT")


def test_descriptors_are_the_last_word() -> None:
    q = quotas(TWO | {"inter.broker.listener.name": "INSIDE"}, max_sockets=1)
    q.opened("OUTSIDE", "a")
    assert not q.has_room("INSIDE")


def test_a_listener_has_its_own_rate_and_all_of_them_one() -> None:
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
def test_an_address_may_have_a_limit_of_its_own(overrides: str, host: str, count: int) -> None:
    q = quotas({"max.connections.per.ip": "1", "max.connections.per.ip.overrides": overrides})
    q.opened("PLAINTEXT", "other")
    assert q.is_too_many_of("other")
    for _ in range(count):
        assert not q.is_too_many_of(host)
        q.opened("PLAINTEXT", host)
    assert q.is_too_many_of(host)


def test_a_name_counts_as_soon_as_its_address_is_known() -> None:
    config = Config({"max.connections.per.ip.overrides": "somewhere:1,10.0.0.1:2"})
    for addresses, expected in (
        ({}, {"10.0.0.1": 2}),
        ({"somewhere": "10.0.0.7"}, {"10.0.0.7": 1, "10.0.0.1": 2}),
    ):
        settings = NetworkSettings.from_config(config, addresses)
        assert settings.max_connections_per_ip_overrides == expected


def test_an_address_has_the_rate_of_any_spelling() -> None:
    for spelling in ("::1", "0:0:0:0:0:0:0:1", "::0001", "[::1]"):
        q = quotas({})
        q.use_rates({(("ip", spelling),): {"connection_creation_rate": 1.0}})
        assert [q.address_delay_s("::1", 0.0) > 0 for _ in range(11)] == [False] * 10 + [True]
        assert not any(q.address_delay_s("::2", 0.0) for _ in range(20))


async def test_an_address_that_opens_too_many_takes_few_of_the_open_files() -> None:
    """Otherwise logs could not be opened, which takes their directory offline."""
    async with serve() as server:
        server.table.quotas.use_rates({(("ip", None),): {"connection_creation_rate": 0.001}})
        peers = [server.peer() for _ in range(100)]
        await server.until(lambda: server.table.metrics.connections_throttled == 100)
        assert 0 < len(server.listener._late) <= 32
        for each in peers:
            each.close()
