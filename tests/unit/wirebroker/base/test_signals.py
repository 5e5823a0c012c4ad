"""Events that are set by signal handlers."""

from __future__ import annotations

import signal
import threading

from wirebroker.base.signals import set_in_handler

PATIENCE_S = 10.0


def test_an_event_is_set_by_a_signal_that_interrupts_its_wait():
    """The main thread holds the event's lock when a wait begins and ends."""
    event = threading.Event()
    former = signal.signal(signal.SIGUSR1, lambda *_: set_in_handler(event))
    try:
        with event._cond:  # type: ignore[attr-defined]
            signal.raise_signal(signal.SIGUSR1)
        assert event.wait(PATIENCE_S)
    finally:
        signal.signal(signal.SIGUSR1, former)
