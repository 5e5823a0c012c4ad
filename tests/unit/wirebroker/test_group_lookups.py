"""Who looks for a coordinator again and again without using it is told of, once."""

from __future__ import annotations

import logging

import pytest

import wirebroker.api.find_coordinator  # noqa: F401 - registers the handler
from tests.unit.coordinator.kit import broker as other_broker
from tests.unit.coordinator.kit import topic
from tests.unit.wirebroker.group_server_kit import find_coordinator, group_broker, turns
from wirebroker.cluster.group_lookups import GroupLookups
from wirebroker.coordinator.groups.partitions import CONSUMER_OFFSETS
from wirebroker.session import Session


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


@pytest.fixture
def lookups(caplog) -> GroupLookups:
    caplog.set_level(logging.INFO)
    return GroupLookups()


def test_the_third_lookup_without_use_is_told_of_once(lookups, caplog):
    client = connection()
    for second in range(2):
        lookups.add("g", client, second)
    assert not caplog.messages
    for second in range(2, 9):
        lookups.add("g", client, second)
    (line,) = caplog.messages
    assert line.startswith("group g: its client at 192.0.2.1:5000 (confluent-kafka-python 2.16.1)")
    assert "group.protocol=classic" in line


def test_who_uses_the_group_between_is_not_told_of(lookups, caplog):
    for second in range(9):
        lookups.add("g", connection(), second)
        lookups.use("g")
    assert not caplog.messages


def test_many_clients_that_look_once_are_not_told_of(lookups, caplog):
    for number in range(9):
        lookups.add("g", connection(number), 0)
    assert not caplog.messages


def test_who_looks_now_and_then_is_not_told_of(lookups, caplog):
    for number in range(9):
        lookups.add("g", connection(), number * 600)
    assert not caplog.messages


def test_what_is_remembered_has_a_bound(lookups, caplog):
    for number in range(1_500):
        for _ in range(3):
            lookups.add(f"g{number}", connection(number), 0)
    assert len(caplog.messages) == 1_500
    assert len(lookups._watched) == len(lookups._said_of) == 1_000


def test_one_connection_makes_one_line_however_many_groups_it_makes_up(lookups, caplog):
    for number in range(100):
        for _ in range(3):
            lookups.add(f"g{number}", connection(), 0)
    assert len(caplog.messages) == 1


async def test_find_coordinator_counts(caplog):
    broker = group_broker(partitions={})
    await find_coordinator(broker, 6, "g")  # makes the topic
    await turns()
    for _ in range(3):
        await find_coordinator(broker, 6, "g")
    (line,) = [each for each in caplog.messages if "KIP-848" in each]
    assert line.startswith("group g:")


async def test_who_is_sent_to_another_node_is_not_told_of(caplog):
    # There the group may well be used; and when that node fails, clients look again and again.
    elsewhere = topic(CONSUMER_OFFSETS, 1, replicas=[2], isr=[2], leader=2)
    broker = group_broker(other_broker(2), *elsewhere, partitions={}, is_led=False)
    for _ in range(3):
        found = await find_coordinator(broker, 6, "g")
        assert found.coordinators[0].node_id == 2
    assert not [each for each in caplog.messages if "KIP-848" in each]
