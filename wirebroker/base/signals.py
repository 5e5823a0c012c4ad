"""Signals that a loop is told of, also where loops can't be (Windows)."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable


def on_signal(name: str, told: Callable[[], None], *, unless_ignored: bool = False) -> None:
    """Call `told` on the running loop when a signal comes; nothing where there is none so named.

    Args:
        name: Such as SIGTERM.
        told: Called on the loop, between other callbacks.
        unless_ignored: Whether one that this process was started to ignore stays ignored.
    """
    number = getattr(signal, name, None)
    if number is None or (unless_ignored and signal.getsignal(number) is signal.SIG_IGN):
        return
    loop = asyncio.get_running_loop()
    try:
        loop.add_signal_handler(number, told)
    except NotImplementedError:
        signal.signal(number, lambda _number, _frame: loop.call_soon_threadsafe(told))
