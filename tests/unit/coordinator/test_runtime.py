"""Timers as data, and outcomes in sequence."""

from wirebroker.codecs.coordinator_records import CoordinatorRecord
from wirebroker.coordinator.outcome import Outcome, Timers

RECORD = CoordinatorRecord(b"key", b"value")


def due(timers, now_ms):
    events = []
    while (event := timers.take_due(now_ms)) is not None:
        events.append(event)
    return events


def test_events_come_in_the_order_of_their_times():
    timers = Timers()
    timers.set("b", 20, "second")
    timers.set("a", 10, "first")
    assert timers.next_ms() == 10
    assert due(timers, 9) == []
    assert due(timers, 20) == ["first", "second"]
    assert timers.next_ms() is None


def test_events_of_one_time_come_in_the_order_in_which_they_were_set():
    timers = Timers()
    for key in "dcba":
        timers.set(key, 5, key)
    assert due(timers, 5) == ["d", "c", "b", "a"]


def test_the_last_set_counts_among_events_of_one_time():
    timers = Timers()
    timers.set("a", 4, "a")
    timers.set("b", 5, "b")
    timers.set("a", 5, "a again")
    timers.set("c", 5, "c")
    timers.set("b", 5, "b again")
    assert due(timers, 4) == []
    assert due(timers, 5) == ["a again", "c", "b again"]


def test_setting_a_key_again_moves_its_event_later():
    timers = Timers()
    timers.set("a", 10, "old")
    timers.set("a", 30, "new")
    assert due(timers, 29) == []
    assert "a" in timers
    assert due(timers, 30) == ["new"]


def test_setting_a_key_again_moves_its_event_earlier():
    timers = Timers()
    timers.set("a", 30, "old")
    timers.set("a", 10, "new")
    assert timers.next_ms() == 10
    assert due(timers, 10) == ["new"]
    assert due(timers, 100) == []


def test_a_cancelled_event_does_not_come_and_its_key_can_be_used_again():
    timers = Timers()
    timers.set("a", 10, "old")
    timers.cancel("a")
    timers.cancel("never set")
    assert due(timers, 100) == []
    timers.set("a", 20, "new")
    assert due(timers, 100) == ["new"]
    assert len(timers) == 0


def test_heartbeats_do_not_pile_up():
    timers = Timers()
    for now in range(1_000):
        timers.set("a", now + 10, now)
        timers.take_due(now)
    assert len(timers._heap) == 1


def test_outcomes_in_a_row_keep_their_records_and_answers_in_order():
    first, second = Outcome(), Outcome([RECORD], is_atomic=False)
    first.answer("a", {"n": 1})
    second.answer("b", {"n": 2})
    both = first.then(second)
    assert both.records == [RECORD]
    assert [token for token, _ in both.answers] == ["a", "b"]
    assert not both.is_atomic
