"""The thread that reads a consumer: order, bounds, rebalances, errors."""

from __future__ import annotations

import queue
import threading
from typing import Any, cast

import pytest

from tests.support.tools.waiting import eventually
from wirebroker.delivery.service import batch_reader
from wirebroker.delivery.service.batch_reader import BatchReader
from wirebroker.delivery.service.inbox import Inbox

MOST = 3


class FakeConsumer:
    """Messages are numbers; an exception among them is raised, a function is a callback."""

    def __init__(self) -> None:
        self.fetched: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.calls: list[str] = []
        self.poll_threads: set[int] = set()

    def poll(self, timeout: float) -> Any:
        self.poll_threads.add(threading.get_ident())
        if "pause" in self.calls and "resume" not in self.calls:
            return None
        try:
            return self._next(timeout)
        except queue.Empty:
            return None

    def consume(self, most: int, _timeout: float) -> list[Any]:
        messages: list[Any] = []
        while len(messages) < most and not self.fetched.empty():
            message = self._next(0)
            if message is not None:
                messages.append(message)
        return messages

    def _next(self, timeout: float) -> Any:
        message = self.fetched.get(timeout=timeout)
        if isinstance(message, Exception):
            raise message
        return message() if callable(message) else message

    def assignment(self) -> list[Any]:
        return []

    def pause(self, _places: list[Any]) -> None:
        self.calls.append("pause")

    def close(self) -> None:
        self.calls.append("close")

    def resume(self, _places: list[Any]) -> None:
        self.calls.append("resume")


class Reading:
    def __init__(self, *messages: Any) -> None:
        self.consumer = FakeConsumer()
        for message in messages:
            self.consumer.fetched.put(message)
        self.inbox = Inbox()
        self.batches: list[list[Any]] = []
        take: Any = self.batches.append
        self.reader = BatchReader(cast("Any", self.consumer), self.inbox, take, most=MOST)

    def serve(self, batches: int) -> list[list[Any]]:
        while len(self.batches) < batches:
            self.inbox.serve(10.0)
        return self.batches


def test_batches_are_bounded_and_in_order():
    reading = Reading(*range(7))
    reading.serve(2)
    reading.reader.allow()
    assert reading.serve(3) == [[0, 1, 2], [3, 4, 5], [6]]
    reading.reader.close()


def test_at_most_two_batches_are_not_yet_processed():
    reading = Reading(*range(9))
    reading.serve(2)
    assert reading.consumer.fetched.qsize() == 3
    reading.inbox.serve(0.05)
    assert len(reading.batches) == 2
    reading.reader.allow()
    assert reading.serve(3)[2] == [6, 7, 8]
    reading.reader.close()


def test_a_consumer_that_may_not_read_is_paused_and_polled_for_rebalances(monkeypatch):
    monkeypatch.setattr(batch_reader, "_PAUSED_AFTER_S", 0.01)
    reading = Reading(*range(8))
    reading.serve(2)
    eventually(lambda: "pause" in reading.consumer.calls)
    reading.reader.allow()
    assert reading.serve(3)[2] == [6, 7]
    assert reading.consumer.calls[-1] == "resume"
    reading.reader.close()


def test_messages_read_before_a_rebalance_are_dropped():
    is_made = threading.Event()
    made: list[Reading] = []

    def wait() -> None:
        assert is_made.wait(10)

    def revoke() -> None:
        made[0].reader.drop()

    made.append(Reading(wait, 1, revoke, 2))
    is_made.set()
    assert made[0].serve(1) == [[2]]
    made[0].reader.close()


def test_an_error_of_the_consumer_is_raised_in_the_inbox():
    reading = Reading(ValueError("refused"))
    with pytest.raises(ValueError, match="refused"):
        reading.inbox.serve(10.0)
    reading.reader.close()


def test_a_reader_ends_while_it_waits():
    reading = Reading(*range(6))
    reading.serve(2)
    reading.reader.close()
    assert not reading.reader._thread.is_alive()
    assert reading.consumer.calls[-1] == "close"


def test_a_reader_that_does_not_end_is_left(monkeypatch, caplog):
    monkeypatch.setattr(batch_reader, "_STOP_S", 0.01)
    is_waiting, released = threading.Event(), threading.Event()

    def wait() -> None:
        is_waiting.set()
        assert released.wait(10)

    reading = Reading(wait)
    assert is_waiting.wait(10)
    reading.reader.close()
    assert "it is left" in caplog.text
    assert "close" not in reading.consumer.calls
    released.set()
    reading.reader._thread.join(10)
