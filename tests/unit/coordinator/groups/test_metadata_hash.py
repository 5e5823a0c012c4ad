"""Hashes of a group's topics, as Kafka's class computes them (tests/java compares at random)."""

from __future__ import annotations

import pytest

from wirebroker.coordinator.groups.metadata_hash import group_hash, topic_hash

ID = bytes(range(16))
# A surrogate pair precedes it in Java's order, and follows it in Python's.
LAST = "\uff21"
PAIR = "\U00010400"


@pytest.mark.parametrize(
    ("topic_id", "name", "racks", "value"),
    [
        (ID, "orders", [["b", "a"], ["a"], []], -7983685316606313749),
        (ID, f"café{PAIR}", [], 3915988970142356720),
        (b"\xff" * 16, "t", [["é" * 200] * 3] * 40, -9075727041160674631),
        (ID, "t", [[LAST, PAIR]], -7493764561052255495),
    ],
    ids=["racks", "no partition", "long", "order of racks"],
)
def test_topic_hash_equals_kafkas(topic_id, name, racks, value):
    assert topic_hash(topic_id, name, racks) == value


def test_order_of_a_partitions_racks_does_not_matter():
    assert topic_hash(ID, "t", [["a", "b"]]) == topic_hash(ID, "t", [["b", "a"]])


@pytest.mark.parametrize(
    "other",
    [
        (bytes(16), "t", [["a"], ["b"]]),
        (ID, "u", [["a"], ["b"]]),
        (ID, "t", [["a"], ["b"], []]),
        (ID, "t", [["b"], ["a"]]),
        (ID, "t", [["a"], ["b", "b"]]),
    ],
    ids=["id", "name", "partitions", "racks", "replicas"],
)
def test_each_change_of_a_topic_changes_its_hash(other):
    assert topic_hash(ID, "t", [["a"], ["b"]]) != topic_hash(*other)


@pytest.mark.parametrize(
    ("hashes", "value"),
    [
        ({}, 0),
        ({"b": 1, "a": -2}, -7441158178328187894),
        ({LAST: 2, PAIR: 1}, 571542372673154031),
    ],
    ids=["no topic", "by name", "order of names"],
)
def test_group_hash_equals_kafkas(hashes, value):
    assert group_hash(hashes) == value
