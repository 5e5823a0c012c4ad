"""The assignor `uniform`: tables of groups and their assignments."""

from __future__ import annotations

import pytest

from tests.support.coordinators.assignor_kit import assigned, topics
from wirebroker.coordinator.groups.assignors.uniform import assign_uniformly


@pytest.mark.parametrize(
    ("counts", "group", "expected"),
    [
        ({}, [], {}),
        ({}, ["a []"], {"a": ""}),
        ({"t": 3}, ["a [t]", "b [t]"], {"a": "t0", "b": "t1 t2"}),
        ({"t": 2}, ["a [t]", "b [t]", "c [t]"], {"a": "", "b": "t0", "c": "t1"}),
        # The number of partitions of all topics counts.
        ({"t": 3, "u": 3}, ["a [t u]", "b [t u]"], {"a": "t0 t1 t2", "b": "u0 u1 u2"}),
        # Members keep what they own.
        ({"t": 3}, ["a [t] t1", "b [t] t0 t2"], {"a": "t1", "b": "t0 t2"}),
        ({"t": 5}, ["a [t] t0 t4", "b [t]", "c [t] t2"], {"a": "t0 t4", "b": "t1", "c": "t2 t3"}),
        # A new member: the last partitions of those with too many move.
        (
            {"t": 3, "u": 3},
            ["a [t u] t0 t1 t2", "b [t u] u0 u1 u2", "c [t u]"],
            {"a": "t0 t1", "b": "u0 u1", "c": "t2 u2"},
        ),
        # A member with more partitions may come after others: it has the larger quota.
        ({"t": 4}, ["a [t] t0", "b [t] t1", "c [t] t2 t3"], {"a": "t0", "b": "t1", "c": "t2 t3"}),
        # A member left, or a topic has more partitions than before.
        ({"t": 4}, ["a [t] t0", "b [t] t1"], {"a": "t0 t2", "b": "t1 t3"}),
        # A topic is no longer subscribed to.
        ({"t": 2}, ["a [t] u0 t0 t1", "b [t] u1"], {"a": "t0", "b": "t1"}),
    ],
)
def test_equal_subscriptions(counts, group, expected):
    assert assigned(assign_uniformly, group, topics(**counts)) == expected


@pytest.mark.parametrize(
    ("counts", "group", "expected"),
    [
        # Topics with more partitions for each subscriber come first; the others balance the loads.
        ({"t": 4, "u": 4}, ["a [t u]", "b [t]"], {"a": "u0 u1 u2 u3", "b": "t0 t1 t2 t3"}),
        ({"t": 4, "u": 1}, ["a [t u]", "b [t]", "c []"], {"a": "t0 t2 u0", "b": "t1 t3", "c": ""}),
        # Members keep what they own.
        ({"t": 4, "u": 2}, ["a [t u] u1 t3", "b [t] t0 t1 t2"], {"a": "t3 u0 u1", "b": "t0 t1 t2"}),
        # The last partitions of the most loaded member move to the least loaded one.
        ({"t": 4, "u": 2}, ["a [t u] t0 t1 t2 t3", "b [t]"], {"a": "t0 u0 u1", "b": "t1 t2 t3"}),
        # A member stays more loaded if only it subscribes.
        ({"t": 2, "u": 5}, ["a [t u] t0", "b [t]"], {"a": "u0 u1 u2 u3 u4", "b": "t0 t1"}),
        # A member no longer subscribes to a topic.
        ({"t": 2, "u": 1}, ["a [t] u0 t0", "b [t u] t1"], {"a": "t0", "b": "t1 u0"}),
        # Balance over three members takes two topics: a gives t to b, b gives u to c.
        (
            {"t": 4, "u": 4},
            ["a [t] t0 t1 t2 t3", "b [t u] u0 u1 u2 u3", "c [u]"],
            {"a": "t0 t1 t2", "b": "t3 u0 u1", "c": "u2 u3"},
        ),
    ],
)
def test_different_subscriptions(counts, group, expected):
    assert assigned(assign_uniformly, group, topics(**counts)) == expected
