"""Range assignment of partitions, and its encoding by consumers."""

from __future__ import annotations

import pytest

from wirebroker.client.groups.consumer_protocol import (
    assignment_bytes,
    assignment_of,
    subscription_bytes,
    subscription_of,
)
from wirebroker.client.groups.group_membership import assigned_by_range
from wirebroker.client.topics.leaders import TopicPartition


def numbers(share):
    return [f"{partition}" for partition in share]


def test_members_get_consecutive_partitions_and_the_first_get_the_remainder():
    shares = assigned_by_range({"b": ["t", "u"], "a": ["t"]}, {"t": 5, "u": 1})
    assert numbers(shares["a"]) == ["t-0", "t-1", "t-2"]
    assert numbers(shares["b"]) == ["t-3", "t-4", "u-0"]


def test_more_members_than_partitions_leaves_some_empty():
    shares = assigned_by_range({"a": ["t"], "b": ["t"], "c": ["gone"]}, {"t": 1})
    assert {member: numbers(share) for member, share in shares.items()} == {
        "a": ["t-0"],
        "b": [],
        "c": [],
    }


def test_subscription_and_assignment_round_trip():
    partitions = [TopicPartition("t", 1), TopicPartition("t", 4), TopicPartition("ü", 0)]
    assert assignment_of(assignment_bytes(partitions)) == partitions
    assert subscription_of(subscription_bytes(["t", "ü"])) == ["t", "ü"]


@pytest.mark.parametrize("data", [b"", b"\0\0\0\0\0\x02\0\x01a", b"\0\0\x7f\xff\xff\xff\0\x05ab"])
def test_invalid_subscription_or_assignment_is_empty(data):
    assert subscription_of(data) == []
    assert assignment_of(data) == []
