from __future__ import annotations

import pytest

from tests.support.records.clocks import HandClock
from wirebroker.console.login import attempt_limit
from wirebroker.console.login.attempt_limit import AttemptLimit, network_of


@pytest.fixture
def clock() -> HandClock:
    return HandClock()


@pytest.fixture
def limit(clock) -> AttemptLimit:
    return AttemptLimit(clock)


def test_ten_failures_in_a_minute_lock_an_address_out_for_a_minute(limit, clock):
    for _ in range(10):
        assert limit.locked_s("192.0.2.1") == 0
        limit.begin("192.0.2.1")
        clock.passed_ms += 5000
    assert limit.locked_s("192.0.2.1") == pytest.approx(55)
    assert limit.locked_s("192.0.2.2") == 0
    clock.passed_ms += 55_000
    assert limit.locked_s("192.0.2.1") == 0


def test_slow_failures_lock_nothing(limit, clock):
    for _ in range(50):
        limit.begin("192.0.2.1")
        clock.passed_ms += 7000
        assert limit.locked_s("192.0.2.1") == 0


def test_a_success_does_not_forget_failures(limit):
    for _ in range(9):
        limit.begin("192.0.2.1")
    limit.begin("192.0.2.1")
    limit.succeed("192.0.2.1")
    assert limit.locked_s("192.0.2.1") == 0
    limit.begin("192.0.2.1")
    assert limit.locked_s("192.0.2.1") > 0


@pytest.mark.parametrize(
    ("address", "network"),
    [
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
        ("unknown", "unknown"),
    ],
)
def test_addresses_of_ipv6_count_by_network(address, network):
    assert network_of(address) == network


def test_the_number_of_addresses_is_bounded(limit, monkeypatch):
    monkeypatch.setattr(attempt_limit, "_MOST_ADDRESSES", 3)
    for number in range(10):
        for _ in range(10):
            limit.begin(f"192.0.2.{number}")
    assert [number for number in range(10) if limit.locked_s(f"192.0.2.{number}")] == [7, 8, 9]
