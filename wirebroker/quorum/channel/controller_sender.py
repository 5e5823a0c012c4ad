"""Tells the controller what waits, one request at a time, until it has taken all of it.

    _wake() --> a batch of what waits --> the controller --> the next batch, until nothing waits
                     ^                         |
                     '--- some time later -----'  it failed, or part of it is to be told again

The time grows with each failure in a row, and one line of the log tells of all that fail alike.
What is new waits for it if nothing was answered, since it would fare no better; it does not wait
for what was refused.

Source: Kafka's AssignmentsManager and DefaultAlterPartitionManager: one request at a time.
"""

from __future__ import annotations

import abc
import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import KafkaError
from wirebroker.net.client.failures import FailureLines, RetryPauses

if TYPE_CHECKING:
    from wirebroker.net.client.settings import Backoff

logger = logging.getLogger(__name__)

_BatchT = TypeVar("_BatchT", bound=dict[Any, Any])


class ControllerSender(abc.ABC, Generic[_BatchT]):
    """What waits, and the task that has it sent.

    Args:
        name: The request's, for the task and the log.
        backoff: How long it waits before something is sent again.
        seed: Of the jitter of that.
    """

    __slots__ = ("_backoff", "_has_more", "_is_stopped", "_lines", "_name", "_pauses", "_sending")

    # something waits and not _is_stopped => _sending is not None

    def __init__(self, name: str, *, backoff: Backoff, seed: int) -> None:
        self._name: Final = name
        self._backoff: Final = backoff
        self._lines: Final = FailureLines(logger, f"{name}: the controller has taken it")
        self._pauses: Final = RetryPauses(backoff, seed=seed)
        self._sending: asyncio.Task[None] | None = None
        self._is_stopped = False
        # Since the last batch was taken out.
        self._has_more = asyncio.Event()

    async def stop(self) -> None:
        """Send nothing more."""
        self._is_stopped = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _wake(self) -> None:
        """Have sent what waits."""
        self._has_more.set()
        if self._sending is None and not self._is_stopped:
            self._sending = asyncio.create_task(self._send_all(), name=self._name)

    async def _send_all(self) -> None:
        """Have everything taken that waits; the root of a task."""
        try:
            while batch := self._next_batch():
                self._has_more.clear()
                left = await self._try(batch)
                self._on_sent(batch, was_answered=left is not None)
                if left == 0:
                    self._lines.end()
                    self._pauses.end()
                else:
                    if left is not None and left < len(batch):
                        self._pauses.begin_anew()
                    await self._pause(was_answered=left is not None)
        finally:
            self._sending = None

    async def _try(self, batch: _BatchT) -> int | None:
        """Send a batch; return how much of it is to be sent again, None: nothing was answered."""
        left: int | None = None
        try:
            left = await self._send(batch)
            if left:
                self._note_failure("refusal", "the controller has not taken all of it")
        except KafkaError as error:
            self._note_failure(error.code.name, error.message or error.code.name)
        except Exception:  # the root of a task: what else waits has to be sent too
            logger.exception("%s failed", self._name)
            self._note_failure("mistake", "see above")
        return left

    def _note_failure(self, kind: str, why: str) -> None:
        self._pauses.add()
        self._lines.add(kind, f"{self._name} is sent again until it is taken: {why}")

    async def _pause(self, *, was_answered: bool) -> None:
        """Wait before the next try; what is new need not wait for what was refused."""
        delay_s = self._pauses.next_s
        if not was_answered:
            await pause(delay_s)
            return
        at_once_s = min(delay_s, self._backoff.first_s)
        await pause(at_once_s)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(delay_s - at_once_s):
                await self._has_more.wait()

    @abc.abstractmethod
    def _next_batch(self) -> _BatchT:
        """Return what is sent next; empty: nothing waits any more."""

    @abc.abstractmethod
    async def _send(self, batch: _BatchT) -> int:
        """Send some; return how many are to be sent again.

        Raises:
            KafkaError: All are.
        """

    @abc.abstractmethod
    def _on_sent(self, batch: _BatchT, *, was_answered: bool) -> None:
        """Take notice that a batch was sent, whatever has become of it."""
