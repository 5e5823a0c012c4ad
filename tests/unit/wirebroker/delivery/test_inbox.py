"""Work that other threads give to the instance's thread."""

from __future__ import annotations

import os
import signal
import threading
import time
from functools import partial

import pytest

from tests.support.tools.waiting import eventually
from wirebroker.delivery.service.inbox import Inbox, InboxClosedError


class Caller(threading.Thread):
    """Calls `work` through the inbox; keeps its result or error."""

    def __init__(self, inbox, work):
        super().__init__(daemon=True)
        self.inbox, self.work = inbox, work
        self.result = self.error = None
        self.start()

    def run(self):
        try:
            self.result = self.inbox.call(self.work)
        except Exception as error:  # noqa: BLE001 - the test looks at it
            self.error = error


def test_work_is_done_in_order_by_the_thread_that_serves():
    inbox = Inbox()
    done: list[tuple[int, int]] = []

    def note(number: int) -> None:
        done.append((number, threading.get_ident()))

    for number in range(3):
        inbox.put(partial(note, number))
    for _ in range(3):
        inbox.serve(1.0)
    assert done == [(number, threading.get_ident()) for number in range(3)]


def test_results_of_transactions_are_served_before_batches():
    inbox = Inbox()
    done: list[str] = []
    for name in ("batch 1", "batch 2"):
        inbox.put(partial(done.append, name))
    for name in ("result 1", "result 2"):
        inbox.put_first(partial(done.append, name))
    for _ in range(4):
        inbox.serve(1.0)
    assert done == ["result 1", "result 2", "batch 1", "batch 2"]


def test_serving_ends_after_its_time_without_work():
    inbox = Inbox()
    inbox.serve(0.0)
    inbox.serve(0.001)


def test_serving_ends_if_a_signal_is_handled_until_its_time_is_over():
    inbox = Inbox()
    late: list[str] = []
    ends_at = time.monotonic() + 0.2

    def handle(_number, _frame):
        while time.monotonic() < ends_at:
            pass

    timers = [
        threading.Timer(0.1, os.kill, (os.getpid(), signal.SIGUSR1)),
        # Ends a failing test.
        threading.Timer(10.0, inbox.put, (partial(late.append, "10 s later"),)),
    ]
    former = signal.signal(signal.SIGUSR1, handle)
    try:
        for timer in timers:
            timer.start()
        inbox.serve(0.15)
    finally:
        signal.signal(signal.SIGUSR1, former)
        for timer in timers:
            timer.cancel()
    assert not late


def test_a_call_returns_the_result():
    inbox = Inbox()
    caller = Caller(inbox, threading.get_ident)
    inbox.serve(10.0)
    caller.join(10)
    assert caller.result == threading.get_ident()


def test_an_error_in_a_call_ends_the_instance_and_the_caller():
    def fail():
        raise ValueError("no index")

    inbox = Inbox()
    caller = Caller(inbox, fail)
    with pytest.raises(ValueError, match="no index"):
        inbox.serve(10.0)
    caller.join(10)
    assert isinstance(caller.error, InboxClosedError)


def test_closing_ends_calls_that_wait_and_later_ones():
    inbox = Inbox()
    waiting = Caller(inbox, lambda: None)
    eventually(lambda: inbox._waiting)
    inbox.close()
    waiting.join(10)
    assert isinstance(waiting.error, InboxClosedError)
    with pytest.raises(InboxClosedError):
        inbox.call(lambda: None)
