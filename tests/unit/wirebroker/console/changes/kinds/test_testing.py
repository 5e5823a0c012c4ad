"""The clock and the faults of a broker in test mode, changed from the console."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.collectors import collecting
from tests.support.console.changes import made, prepared, run_line
from tests.support.http.kit_http import control_url
from wirebroker.client.errors import ClientError
from wirebroker.client.topics.topics import create_topics
from wirebroker.console.broker_http.control_calls import controlled_clock, controlled_faults
from wirebroker.console.changes.change import ChangeError
from wirebroker.testing import Broker

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator

    from wirebroker.console.model.collector import Collector

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker.spawn() as spawned:
        yield spawned


@contextlib.asynccontextmanager
async def controlled(broker: Broker) -> AsyncIterator[Collector]:
    """Return a collector whose cluster has the address of the test mode."""
    properties = {
        "bootstrap.servers": broker.bootstrap_servers,
        "wirebroker.test.url": control_url(broker),
    }
    async with collecting(broker.bootstrap_servers, properties) as c:
        yield c


async def test_the_clock_is_advanced(broker):
    async with controlled(broker) as c:
        before = await controlled_clock(c.settings)
        plan = await prepared(c, "advance-clock", amount=2, unit="hours")
        assert plan.summary == "Advance the broker's clock by 2 h"
        assert (await plan.apply()).startswith("the broker's clock shows 20")
        after = await controlled_clock(c.settings)
        assert after.ahead_ms - before.ahead_ms == 2 * HOUR_MS


async def test_the_clock_is_stopped_set_and_returned_to_the_machines_time(broker):
    async with controlled(broker) as c:
        assert (await prepared(c, "run-clock", state="stopped")).lines == ("running → stopped",)
        await made(c, "run-clock", state="stopped")
        await made(c, "set-clock", time="2040-01-02T03:04:05Z")
        clock = await controlled_clock(c.settings)
        assert (clock.now_ms, clock.is_stopped) == (2_209_086_245_000, True)
        with pytest.raises(ChangeError, match="stands still already"):
            await prepared(c, "run-clock", state="stopped")
        await made(c, "run-clock", state="machine")
        clock = await controlled_clock(c.settings)
        assert (clock.ahead_ms, clock.is_stopped) == (0, False)
        with pytest.raises(ChangeError, match="runs already"):
            await prepared(c, "run-clock", state="running")


async def test_a_fault_is_set_acts_and_is_removed(broker):
    async with controlled(broker) as c:
        values = {"api": "create_topics", "error": "policy_violation", "times": 1}
        plan = await prepared(c, "add-fault", **values)
        assert plan.summary == "Set a fault: return an error"
        assert plan.lines == (
            "kind: error",
            "api: CREATE_TOPICS",
            "error: POLICY_VIOLATION",
            "acts 1 time",
        )
        assert (await plan.apply()).startswith("fault ")
        with pytest.raises(ClientError, match="POLICY_VIOLATION"):
            await create_topics(c.client, {"refused": 1}, configs={})
        (fault,) = await controlled_faults(c.settings)
        assert (fault.kind, fault.acted, fault.left) == ("error", 1, 0)
        plan = await prepared(c, "remove-faults", number=fault.number)
        assert plan.lines == (f"- {fault.number}: error POLICY_VIOLATION CREATE_TOPICS",)
        await plan.apply()
        assert await controlled_faults(c.settings) == []
        with pytest.raises(ChangeError, match="no such fault"):
            await prepared(c, "remove-faults")


async def test_a_fault_of_all_requests_is_warned_of(broker):
    async with controlled(broker) as c:
        plan = await prepared(c, "add-fault", fault="delay", delay_ms=5)
        assert plan.warnings == ("all requests are affected, also those of this console",)


async def test_the_command_lines_do_the_same(broker, tmp_path):
    async with controlled(broker) as c:
        before = await controlled_clock(c.settings)
        await run_line((await prepared(c, "advance-clock", amount=1)).command, tmp_path)
        after = await controlled_clock(c.settings)
        assert after.ahead_ms - before.ahead_ms == 60_000
        plan = await prepared(c, "add-fault", fault="throttle", delay_ms=5, client_id="it's me")
        await run_line(plan.command, tmp_path)
        (fault,) = await controlled_faults(c.settings)
        assert (fault.kind, fault.client_id) == ("throttle", "it's me")
        await run_line((await prepared(c, "remove-faults")).command, tmp_path)
        assert await controlled_faults(c.settings) == []


@pytest.mark.parametrize(
    ("kind", "values", "error", "message"),
    [
        ("advance-clock", {"amount": "0"}, ChangeError, "a number from 1"),
        ("advance-clock", {"amount": "1e3"}, ChangeError, "is not a whole number"),
        ("set-clock", {"time": "soon"}, ChangeError, "is not a time"),
        ("add-fault", {"error": "NONE"}, ChangeError, "needs a request and an error code"),
        ("add-fault", {"fault": "delay"}, ChangeError, "for how many milliseconds"),
        ("add-fault", {"fault": "delay", "delay_ms": "x"}, ChangeError, "is not a whole number"),
        ("add-fault", {"api": "X", "error": "Y"}, ClientError, "no request is called X"),
        ("set-clock", {"time": "9999-12-31"}, ClientError, "cannot be set|hundred years"),
    ],
)
async def test_wrong_values_are_refused(broker, kind, values, error, message):
    async with controlled(broker) as c:
        with pytest.raises(error, match=message):
            await made(c, kind, **values)


@pytest.mark.parametrize(
    ("properties", "message"),
    [
        ({}, "has no wirebroker.test.url"),
        ({"wirebroker.test.url": "http://127.0.0.1:1"}, "does not respond"),
    ],
)
async def test_without_a_broker_in_test_mode_the_reason_is_named(properties, message):
    async with collecting("127.0.0.1:1", properties) as c:
        with pytest.raises(ClientError, match=message):
            await prepared(c, "advance-clock", amount=1)
