"""Callbacks per growth; a canceled waiter leaves no memory."""

import random

from wirebroker.replica.growth_watch import GrowthWatch


def callbacks(count):
    return [lambda number=number: number for number in range(count)]


def test_those_are_taken_that_are_due():
    watch = GrowthWatch()
    first, second, third = callbacks(3)
    watch.add(first, due=10)
    watch.add(second, due=5)
    watch.add(third, due=11)
    assert watch.take_due(4) == []
    assert watch.take_due(10) == [second, first]
    assert watch.take_due(10) == []
    assert len(watch) == 1
    assert watch.take_all() == [third]
    assert watch.take_due(100) == []


def test_who_is_added_again_is_due_anew():
    watch = GrowthWatch()
    (callback,) = callbacks(1)
    watch.add(callback, due=5)
    watch.add(callback, due=50)
    assert watch.take_due(49) == []
    assert watch.take_due(50) == [callback]


def test_who_leaves_is_not_taken_and_costs_no_memory():
    watch = GrowthWatch()
    rng = random.Random(5)
    stays = callbacks(10)
    for each in stays:
        watch.add(each, due=1 << 40)
    for each in callbacks(5_000):
        watch.add(each, due=rng.randrange(1 << 40))
        watch.discard(each)
        watch.discard(each)
    assert len(watch) == 10
    assert len(watch._heap) < 100
    assert set(watch.take_due(1 << 40)) == set(stays)
