"""Heartbeats in a separate thread, so that a busy event loop does not cost leaderships.

Source: Kafka's BrokerLifecycleManager, whose event queue is also a thread (KIP-631).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import threading
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import without_frames
from wirebroker.net.client.errors import PeerError
from wirebroker.net.client.settings import Backoff

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.net.client.active_controller import ActiveController

logger = logging.getLogger(__name__)

_STOP_S: Final = 5.0
# The first retry, as in Kafka. Kafka's pauses grow up to a session, which may get the broker fenced
# when a controller comes back; these have a lower limit.
_RETRY_S: Final = 0.1


class Heartbeats:
    """Sends BrokerHeartbeat repeatedly.

    Args:
        make_controllers: Creates the thread's own connections.
        question: Returns the request's body; called in the thread, and only reads.
        on_answer: Receives each response or error, on the loop that called `start`.
        interval_s: Returns the pause after a response; called in the thread.
        most_s: The longest pause after failures.
        timeout_s: For one heartbeat, including the search for a controller.
    """

    __slots__ = (
        "_caller_loop",
        "_hurry",
        "_interval_s",
        "_is_stopped",
        "_loop",
        "_make_controllers",
        "_on_answer",
        "_question",
        "_random",
        "_retry",
        "_task",
        "_thread",
        "_timeout_s",
    )

    def __init__(
        self,
        make_controllers: Callable[[], ActiveController],
        *,
        question: Callable[[], Mapping[str, Any]],
        on_answer: Callable[[Any], None],
        interval_s: Callable[[], float],
        most_s: float,
        timeout_s: float,
    ) -> None:
        self._make_controllers = make_controllers
        self._question = question
        self._on_answer = on_answer
        self._interval_s = interval_s
        self._retry = Backoff(first_s=_RETRY_S, most_s=most_s, jitter=0.02)
        self._random = random.Random()  # noqa: S311 - jitter, no secrets
        self._timeout_s = timeout_s
        self._caller_loop = asyncio.get_running_loop()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._hurry: asyncio.Event | None = None
        self._task: asyncio.Task[None] | None = None
        self._thread: threading.Thread | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start the thread."""
        assert self._thread is None, "it was already started"
        self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
        self._thread.start()

    def send_now(self) -> None:
        """Send the next heartbeat immediately."""
        if self._loop is not None and self._hurry is not None:
            with contextlib.suppress(RuntimeError):  # it has ended
                self._loop.call_soon_threadsafe(self._hurry.set)

    async def stop(self) -> None:
        """Stop the thread and wait for its end."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._is_stopped = True  # if the thread has no loop yet
        if self._loop is not None and self._task is not None:
            with contextlib.suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._task.cancel)
        await in_thread(Work.UPKEEP, thread.join, _STOP_S)

    # In the thread

    def _run(self) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            asyncio.run(self._beat())

    async def _beat(self) -> None:
        self._hurry = send_now = asyncio.Event()
        self._task = asyncio.current_task()
        self._loop = asyncio.get_running_loop()
        controllers = self._make_controllers()
        failures = 0
        try:
            while not self._is_stopped:
                send_now.clear()
                failures = 0 if await self._is_taken(controllers) else failures + 1
                delay_s = self._retry.delay_s(failures, self._random) or self._interval_s()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(delay_s):
                        await send_now.wait()
        finally:
            await controllers.close()

    async def _is_taken(self, controllers: ActiveController) -> bool:
        try:
            answer = await self._ask(controllers)
            self._tell(answer)
        except Exception:  # without heartbeats the broker is fenced
            logger.exception("a heartbeat failed; retrying")
            return False
        return not isinstance(answer, PeerError) and not answer.error_code

    async def _ask(self, controllers: ActiveController) -> Any:
        try:
            return await controllers.request(
                ApiKey.BROKER_HEARTBEAT, self._question(), timeout_s=self._timeout_s
            )
        except PeerError as error:
            return without_frames(error)

    def _tell(self, answer: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the other loop has ended
            self._caller_loop.call_soon_threadsafe(self._on_answer, answer)
