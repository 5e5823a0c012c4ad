"""Tells the controller what waits, one request at a time, until it has taken all of it.

    _wake() --> a batch of what waits --> the controller --> the next batch, until nothing waits
                     ^                         |
                     '--- a moment later ------'  it failed, or part of it is to be told again

Source: Kafka's AssignmentsManager and DefaultAlterPartitionManager: one request at a time.
"""

from __future__ import annotations

import abc
import asyncio
import logging
from typing import Any, Final, Generic, TypeVar

from wirebroker.clock import pause
from wirebroker.codecs.errors import KafkaError

logger = logging.getLogger(__name__)

_BatchT = TypeVar("_BatchT", bound=dict[Any, Any])


class ControllerSender(abc.ABC, Generic[_BatchT]):
    """What waits, and the task that has it sent.

    Args:
        name: The request's, for the task and the log.
        retry_s: How long it waits before something is sent again.
    """

    __slots__ = ("_is_stopped", "_name", "_retry_s", "_sending")

    # something waits and not _is_stopped => _sending is not None

    def __init__(self, name: str, *, retry_s: float) -> None:
        self._name: Final = name
        self._retry_s: Final = retry_s
        self._sending: asyncio.Task[None] | None = None
        self._is_stopped = False

    async def stop(self) -> None:
        """Send nothing more."""
        self._is_stopped = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _wake(self) -> None:
        """Have sent what waits."""
        if self._sending is None and not self._is_stopped:
            self._sending = asyncio.create_task(self._send_all(), name=self._name)

    async def _send_all(self) -> None:
        """Have everything taken that waits; the root of a task."""
        try:
            while batch := self._next_batch():
                was_answered = False
                has_failed = True
                try:
                    has_failed = await self._send(batch)
                    was_answered = True
                except KafkaError as error:
                    logger.info("%s is sent again: %s", self._name, error.message or error)
                except Exception:  # the root of a task: what else waits has to be sent too
                    logger.exception("%s failed; it is sent again", self._name)
                self._on_sent(batch, was_answered=was_answered)
                if has_failed:
                    await pause(self._retry_s)
        finally:
            self._sending = None

    @abc.abstractmethod
    def _next_batch(self) -> _BatchT:
        """Return what is sent next; empty: nothing waits any more."""

    @abc.abstractmethod
    async def _send(self, batch: _BatchT) -> bool:
        """Send some; return whether any is to be sent again.

        Raises:
            KafkaError: All are.
        """

    @abc.abstractmethod
    def _on_sent(self, batch: _BatchT, *, was_answered: bool) -> None:
        """Take notice that a batch was sent, whatever has become of it."""
