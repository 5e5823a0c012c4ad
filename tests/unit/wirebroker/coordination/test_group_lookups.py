"""Warnings about clients that look up a group's coordinator and do not use it."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

import wirebroker.api.groups.find_coordinator  # noqa: F401 - registers the handler
from tests.support.coordinators.kit import broker as other_broker
from tests.support.coordinators.kit import topic
from tests.unit.wirebroker.coordination.group_server_kit import (
    find_coordinator,
    group_broker,
    turns,
)
from wirebroker.coordination.group_coordinator import GroupLookups
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.request.session import ANSWER_IS_DUE, Session

if TYPE_CHECKING:
    from collections.abc import Callable


def connection(number: int = 1) -> Session:
    info = Session(
        connection_id=f"c{number}",
        peer=f"192.0.2.{number}:5000",
        listener_name="PLAINTEXT",
        local_host="127.0.0.1",
        local_port=9092,
    )
    info.client_software_name = "confluent-kafka-python"
    info.client_software_version = "2.16.1"
    return info


class Timers:
    def __init__(self) -> None:
        self._due: list[Callable[[], None]] = []

    def call_later(self, _seconds: float, callback: Callable[[], None]) -> None:
        self._due.append(callback)

    def expire(self) -> None:
        while self._due:
            self._due.pop(0)()


@pytest.fixture
def timers() -> Timers:
    return Timers()


@pytest.fixture
def lookups(caplog, timers) -> GroupLookups:
    caplog.set_level(logging.INFO)
    return GroupLookups(timers.call_later)


def look_up(lookups: GroupLookups, group_id: str, client: Session, times: int = 2) -> None:
    for _ in range(times):
        lookups.add(group_id, client, "orders-app", 0)


def test_two_lookups_without_further_requests_cause_one_warning(lookups, timers, caplog):
    client = connection()
    look_up(lookups, "g", client, 9)
    assert not caplog.messages
    timers.expire()
    look_up(lookups, "g", client, 9)
    timers.expire()
    (line,) = caplog.messages
    prefix = "group g: its client orders-app at 192.0.2.1:5000 (confluent-kafka-python 2.16.1)"
    assert line.startswith(prefix)
    assert "group.protocol=classic" in line


def test_alternating_lookups_of_two_clients_cause_one_warning(lookups, timers, caplog):
    first, second = connection(1), connection(2)
    for client in (first, second, first, second):
        look_up(lookups, "g", client, 1)
    timers.expire()
    assert len(caplog.messages) == 1


def test_used_group_causes_no_warning(lookups, timers, caplog):
    look_up(lookups, "g", connection())
    lookups.use("g")
    timers.expire()
    assert not caplog.messages


def test_disconnected_client_causes_no_warning(lookups, timers, caplog):
    client = connection()
    look_up(lookups, "g", client)
    client.end()
    timers.expire()
    assert not caplog.messages


def test_fetching_client_causes_no_warning(lookups, timers, caplog):
    client = connection()
    look_up(lookups, "g", client)
    client.pauses |= ANSWER_IS_DUE
    timers.expire()
    assert not caplog.messages


def test_single_lookups_of_many_clients_cause_no_warning(lookups, timers, caplog):
    for number in range(99):
        look_up(lookups, "g", connection(number), 1)
    timers.expire()
    assert not caplog.messages


def test_infrequent_lookups_cause_no_warning(lookups, timers, caplog):
    for number in range(9):
        lookups.add("g", connection(), None, number * 600)
    timers.expire()
    assert not caplog.messages


def test_remembered_lookups_are_bounded(lookups, timers, caplog):
    for number in range(1_500):
        look_up(lookups, f"g{number}", connection(number))
    assert len(lookups._watched) == 1_000
    timers.expire()
    assert len(caplog.messages) == len(lookups._warned_groups) / 2 + 500 == 1_000
    for number in range(99):
        look_up(lookups, "g", connection(number), 1)
    assert len(lookups._watched["g"]) == 16


def test_one_connection_causes_one_warning_for_any_number_of_groups(lookups, timers, caplog):
    for number in range(100):
        look_up(lookups, f"g{number}", connection())
    timers.expire()
    assert len(caplog.messages) == 1


async def test_find_coordinator_requests_count_as_lookups(caplog, timers):
    broker = group_broker(partitions={})
    broker.groups.lookups = GroupLookups(timers.call_later)
    await find_coordinator(broker, 6, "g")  # creates the topic
    await turns()
    for _ in range(2):
        await find_coordinator(broker, 6, "g")
    timers.expire()
    (line,) = [message for message in caplog.messages if "KIP-848" in message]
    assert line.startswith("group g: its client client at ")


async def test_client_redirected_to_another_node_causes_no_warning(caplog, timers):
    # The group may be used there; and when that node fails, clients look it up repeatedly.
    elsewhere = topic(CONSUMER_OFFSETS, 1, replicas=[2], isr=[2], leader=2)
    broker = group_broker(other_broker(2), *elsewhere, partitions={}, is_led=False)
    broker.groups.lookups = GroupLookups(timers.call_later)
    for _ in range(3):
        response = await find_coordinator(broker, 6, "g")
        assert response.coordinators[0].node_id == 2
    timers.expire()
    assert not [message for message in caplog.messages if "KIP-848" in message]
