"""The orders of Java's hash maps, timeline maps and priority queues."""

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.java_collections import (
    JavaPriorityQueue,
    computed_order,
    hash_order,
    java_order,
    timeline_order,
)


def computed(keys, capacity):
    return in_one_go(computed_order(keys, capacity=capacity))


def test_texts_are_compared_by_their_utf_16_units():
    # A surrogate pair begins below U+E000.
    assert sorted(["\uff21", "\U00010400", "a"], key=java_order) == ["a", "\U00010400", "\uff21"]


@pytest.mark.parametrize(
    ("keys", "order"),
    [
        ([], []),
        (["b", "a", "c"], ["a", "b", "c"]),
        (["10", "9", "1", "2"], ["1", "2", "9", "10"]),
        # Both have the hash 2112: the first one inserted comes first.
        (["BB", "Aa"], ["BB", "Aa"]),
        (["Aa", "BB"], ["Aa", "BB"]),
    ],
)
def test_hash_map_has_the_order_of_its_buckets(keys, order):
    assert hash_order(keys) == order


def test_thirteenth_key_doubles_the_buckets():
    # Their hashes differ by 16: one bucket of 16, two of 32.
    first, second = "A", "Q"
    others = [chr(ord("a") + number) for number in range(10)]
    assert hash_order([second, first, *others])[:2] == [second, first]
    assert hash_order([second, first, *others, "z"]).index(first) < hash_order(
        [second, first, *others, "z"]
    ).index(second)


def test_computed_keys_come_in_front_of_their_bucket():
    assert computed(["Aa", "BB"], 16) == ["BB", "Aa"]
    assert computed(["Q", "A"], 2) == ["A", "Q"]
    # Three buckets of four are taken before the fifth key enlarges the table.
    assert computed(["A", "E", "B", "C"], 4) == ["E", "A", "B", "C"]
    assert computed(["A", "E", "B", "C", "D"], 4) == [
        "A",
        "B",
        "C",
        "D",
        "E",
    ]
    # So does a key that is in the table.
    assert computed(["A", "E", "B", "C", "B"], 4) == ["A", "B", "C", "E"]


def test_timeline_map_visits_the_newest_key_of_a_bucket_first():
    assert in_one_go(timeline_order(["Aa", "BB"])) == ["BB", "Aa"]
    assert in_one_go(timeline_order(["BB", "Aa"])) == ["Aa", "BB"]
    assert sorted(in_one_go(timeline_order(map(str, range(50))))) == sorted(map(str, range(50)))


def test_queue_returns_the_least_element():
    queue = JavaPriorityQueue([(key, f"v{key}") for key in (5, 3, 8, 1, 9, 2)])
    assert len(queue) == 6
    assert [queue.poll() for _ in range(6)] == ["v1", "v2", "v3", "v5", "v8", "v9"]
    with pytest.raises(IndexError):
        queue.poll()


def test_equal_elements_have_the_order_of_javas_heap():
    queue = JavaPriorityQueue([(0, name) for name in "abcd"])
    # The last element takes the first one's place.
    assert [queue.poll() for _ in range(4)] == ["a", "d", "c", "b"]
