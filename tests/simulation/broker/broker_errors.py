"""A watch for errors that brokers log and for exceptions that nothing handles."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from tests.simulation.machine.loop import is_of_the_dead

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable

    from tests.simulation.machine.loop import SimulatedLoop


class BrokerErrors(logging.Handler):
    """Reports errors of the live brokers on a loop until it is closed.

    Args:
        loop: The brokers' loop.
        on_error: Called with each error.
    """

    def __init__(self, loop: SimulatedLoop, on_error: Callable[[BaseException], None]) -> None:
        super().__init__(logging.ERROR)
        self._on_error = on_error
        self._logger = logging.getLogger("wirebroker")
        self._logger.addHandler(self)
        loop.set_exception_handler(self._on_exception)

    def close(self) -> None:
        self._logger.removeHandler(self)
        super().close()

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if record.exc_info and record.exc_info[1] is not None:
            text += f": {record.exc_info[1]!r}"
        self._on_error(AssertionError(f"the broker says: {text}"))

    def _on_exception(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        del loop
        if not is_of_the_dead(context):
            error = context.get("exception") or AssertionError(context["message"])
            error.add_note(context["message"])
            self._on_error(error)
