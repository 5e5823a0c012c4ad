"""Callbacks per growth; a canceled waiter leaves no memory."""

import random

from wirebroker.replica.offset_waiters import OffsetWaiters


def callbacks(count):
    return [lambda number=number: number for number in range(count)]


def test_due_callbacks_are_taken():
    watch = OffsetWaiters()
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


def test_callback_added_again_gets_the_new_due_offset():
    watch = OffsetWaiters()
    (callback,) = callbacks(1)
    watch.add(callback, due=5)
    watch.add(callback, due=50)
    assert watch.take_due(49) == []
    assert watch.take_due(50) == [callback]


def test_discarded_callbacks_are_not_taken_and_use_no_memory():
    watch = OffsetWaiters()
    rng = random.Random(5)
    stays = callbacks(10)
    for callback in stays:
        watch.add(callback, due=1 << 40)
    for callback in callbacks(5_000):
        watch.add(callback, due=rng.randrange(1 << 40))
        watch.discard(callback)
        watch.discard(callback)
    assert len(watch) == 10
    assert len(watch._heap) < 100
    assert set(watch.take_due(1 << 40)) == set(stays)
