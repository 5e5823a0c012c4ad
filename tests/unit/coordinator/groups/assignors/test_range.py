"""The assignor `range`: tables of groups and their assignments."""

from __future__ import annotations

import pytest

from tests.support.coordinators.assignor_kit import assigned, topics
from wirebroker.coordinator.groups.assignors.range import assign_ranges


@pytest.mark.parametrize(
    ("counts", "group", "expected"),
    [
        ({"t": 4}, ["a [t]", "b [t]"], {"a": "t0 t1", "b": "t2 t3"}),
        # The first members get one more.
        ({"t": 5}, ["a [t]", "b [t]", "c [t]"], {"a": "t0 t1", "b": "t2 t3", "c": "t4"}),
        # Each topic is divided on its own.
        ({"t": 3, "u": 3}, ["a [t u]", "b [t u]"], {"a": "t0 t1 u0 u1", "b": "t2 u2"}),
        # Members without partitions.
        ({"t": 2}, ["a [t]", "b [t]", "c [t]"], {"a": "t0", "b": "t1", "c": ""}),
        ({"t": 0}, ["a [t]"], {"a": ""}),
        ({}, ["a []", "b []"], {"a": "", "b": ""}),
        ({}, [], {}),
        # Only subscribers count.
        (
            {"t": 4, "u": 3},
            ["a [t]", "b [t u]", "c [u]"],
            {"a": "t0 t1", "b": "t2 t3 u0 u1", "c": "u2"},
        ),
        ({"t": 2, "u": 1}, ["a [u]", "b [t]", "c []"], {"a": "u0", "b": "t0 t1", "c": ""}),
    ],
)
def test_topics_are_divided_into_ranges(counts, group, expected):
    assert assigned(assign_ranges, group, topics(**counts)) == expected


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        # By member id, not by the order of the input.
        (["b [t]", "a [t]"], {"a": "t0", "b": "t1"}),
        # Static members come first, by instance id.
        (["a [t]", "z/x [t]"], {"z": "t0", "a": "t1"}),
        (["a/y [t]", "b/x [t]"], {"b": "t0", "a": "t1"}),
        # Java compares UTF-16 code units: a surrogate is lower than U+FF21.
        (["\uff21 [t]", "\U00010400 [t]"], {"\U00010400": "t0", "\uff21": "t1"}),
        # The present assignment plays no role.
        (["a [t] t1", "b [t] t0"], {"a": "t0", "b": "t1"}),
    ],
)
def test_members_are_sorted(group, expected):
    assert assigned(assign_ranges, group, topics(t=2)) == expected


def test_equal_partition_numbers_of_similar_topics_meet():
    group = [f"{name} [t u]" for name in "abc"]
    for owned in assigned(assign_ranges, group, topics(t=7, u=7)).values():
        numbers = {letter: [p[1:] for p in owned.split() if p[0] == letter] for letter in "tu"}
        assert numbers["t"] == numbers["u"] != []
