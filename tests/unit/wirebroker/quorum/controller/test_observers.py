"""Observers of the metadata log: when they caught up, and when they expire."""

from wirebroker.quorum.controller.observers import ObserverId, Observers

ONE = ObserverId(1, bytes(16))
TWO = ObserverId(2, bytes(16))


def test_observer_fetching_at_the_log_end_is_caught_up():
    observers = Observers()
    observers.note(ONE, 10, 10, 1_000)
    # Reaching the end of a moment ago counts as caught up at that moment.
    observers.note(ONE, 10, 15, 2_000)
    [(_, progress)] = observers.lately(2_000)
    assert (progress.last_fetch_ms, progress.last_caught_up_ms) == (2_000, 1_000)
    observers.note(ONE, 15, 20, 3_000)
    [(_, progress)] = observers.lately(3_000)
    assert progress.last_caught_up_ms == 2_000


def test_lagging_observer_was_never_caught_up():
    observers = Observers()
    observers.note(ONE, 1, 10, 1_000)
    [(_, progress)] = observers.lately(1_000)
    assert progress.last_caught_up_ms == -1


def test_observer_silent_for_five_minutes_is_removed():
    observers = Observers()
    observers.note(TWO, 10, 10, 0)
    observers.note(ONE, 10, 10, 200_000)
    assert [observer for observer, _ in observers.lately(300_000)] == [ONE, TWO]
    assert [observer for observer, _ in observers.lately(300_001)] == [ONE]


def test_oldest_observer_is_removed_beyond_the_limit():
    observers = Observers()
    for node_id in range(1_001):
        observers.note(ObserverId(node_id, bytes(16)), 1, 1, node_id)
    assert [observer.node_id for observer, _ in observers.lately(1_000)] == [*range(1, 1_001)]
