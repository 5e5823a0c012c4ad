"""Signal handlers: on the event loop, including on Windows, and of programs without one."""

from __future__ import annotations

import asyncio
import signal
import threading
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def on_signal(name: str, callback: Callable[[], None], *, unless_ignored: bool = False) -> None:
    """Call a function on the running loop when a signal arrives; ignore unknown signals.

    With `unless_ignored`, an inherited SIG_IGN stays in force.
    """
    number = getattr(signal, name, None)
    if number is None or (unless_ignored and signal.getsignal(number) is signal.SIG_IGN):
        return
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, callback)
    except NotImplementedError:
        signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(callback))


def set_in_handler(event: threading.Event) -> None:
    """Set an event in a signal handler, by another thread.

    A handler runs in the main thread. If that was about to wait for the event, it may hold the
    event's lock, for which `set` would wait forever.
    """
    threading.Thread(target=event.set, name="signal", daemon=True).start()
