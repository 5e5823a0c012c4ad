"""Sends pending items to the controller, one request at a time, until all are accepted.

New items wait for the backoff of a failed request, but not for that of refused items.

Source: Kafka's AssignmentsManager and DefaultAlterPartitionManager.
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
    """The pending items and the task that sends them.

    `name` is the request's, for the task and the log; `seed` is for the jitter of the pauses.
    """

    __slots__ = ("_backoff", "_has_more", "_is_stopped", "_lines", "_name", "_pauses", "_sending")

    # Pending items and not _is_stopped => _sending is not None.

    def __init__(self, name: str, *, backoff: Backoff, seed: int) -> None:
        self._name: Final = name
        self._backoff: Final = backoff
        self._lines: Final = FailureLines(logger, f"{name}: the controller accepted the request")
        self._pauses: Final = RetryPauses(backoff, seed=seed)
        self._sending: asyncio.Task[None] | None = None
        self._is_stopped = False
        # New items since the last batch.
        self._has_more = asyncio.Event()

    async def stop(self) -> None:
        """Stop sending."""
        self._is_stopped = True
        if self._sending is not None:
            self._sending.cancel()
            await asyncio.gather(self._sending, return_exceptions=True)

    def _wake(self) -> None:
        self._has_more.set()
        if self._sending is None and not self._is_stopped:
            self._sending = asyncio.create_task(self._send_all(), name=self._name)

    async def _send_all(self) -> None:
        try:
            while batch := self._next_batch():
                self._has_more.clear()
                remaining = await self._try(batch)
                self._on_sent(batch, was_answered=remaining is not None)
                if remaining == 0:
                    self._lines.end()
                    self._pauses.end()
                else:
                    if remaining is not None and remaining < len(batch):
                        self._pauses.reset()
                    await self._pause(was_answered=remaining is not None)
        finally:
            self._sending = None

    async def _try(self, batch: _BatchT) -> int | None:
        """Send a batch; return how many items to retry, or None without a response."""
        remaining: int | None = None
        try:
            remaining = await self._send(batch)
            if remaining:
                self._note_failure("refusal", "the controller refused a part")
        except KafkaError as error:
            self._note_failure(error.code.name, error.message or error.code.name)
        except Exception:  # other items must still be sent
            logger.exception("%s failed", self._name)
            self._note_failure("mistake", "see above")
        return remaining

    def _note_failure(self, kind: str, reason: str) -> None:
        self._pauses.add()
        self._lines.add(kind, f"{self._name} failed, retrying: {reason}")

    async def _pause(self, *, was_answered: bool) -> None:
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
        """Return the next batch, perhaps empty."""

    @abc.abstractmethod
    async def _send(self, batch: _BatchT) -> int:
        """Send a batch; return how many items to retry.

        Raises:
            KafkaError: The whole batch failed.
        """

    @abc.abstractmethod
    def _on_sent(self, batch: _BatchT, *, was_answered: bool) -> None:
        """Handle the end of a request."""
