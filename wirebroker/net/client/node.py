"""A peer that is connected on demand, with delays between failed attempts.

There is one connection and one attempt at a time. Requests wait for the attempt; canceling them
does not cancel it.

A request is sent once; the caller decides about retries (`PeerError.may_have_arrived`). After
failed attempts a request waits for the end of the delay, so that callers may retry immediately.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import pause
from wirebroker.codecs.errors import without_frames
from wirebroker.net.client.connection import PeerConnection
from wirebroker.net.client.errors import CannotConnectError, PeerError, seconds_of

if TYPE_CHECKING:
    from random import Random

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.net.client.connection import Body, Handshake
    from wirebroker.net.client.settings import ClientSettings, PeerAddress
    from wirebroker.net.client.transport import Dialer
    from wirebroker.net.frames.frame_buffer import FrameBlocks


class Node:
    """A peer, connected or not; `failures` counts failed attempts since the last success."""

    __slots__ = (
        "_attempt",
        "_clock",
        "_connection",
        "_dialer",
        "_handshake",
        "_is_closed",
        "_last_error",
        "_not_before",
        "_random",
        "_settings",
        "_shared_blocks",
        "address",
        "failures",
    )

    # _attempt is not None => _connection is None.

    def __init__(
        self,
        address: PeerAddress,
        *,
        dialer: Dialer,
        settings: ClientSettings,
        clock: Clock,
        random: Random,
        handshake: Handshake | None = None,
        shared_blocks: FrameBlocks | None = None,
    ) -> None:
        self.address = address
        self.failures = 0
        self._dialer = dialer
        self._settings = settings
        self._clock = clock
        self._random = random
        self._handshake = handshake
        self._shared_blocks = shared_blocks
        self._connection: PeerConnection | None = None
        self._attempt: asyncio.Task[PeerConnection | PeerError] | None = None
        # End and cause of the current delay.
        self._not_before = 0.0
        self._last_error: PeerError | None = None
        self._is_closed = False

    @property
    def is_connected(self) -> bool:
        """Whether a request would be sent immediately."""
        return self._connection is not None and self._connection.is_open

    async def request(
        self,
        key: ApiKey,
        body: Body,
        *,
        timeout_s: float | None = None,
        at_most: int | None = None,
    ) -> Any:
        """Send a request as PeerConnection does; the timeout includes the connecting.

        Raises:
            PeerError: There is no response.
        """
        if timeout_s is None:
            timeout_s = self._settings.request_timeout_s
        deadline = self._clock.monotonic() + timeout_s
        connection = await self.connect(timeout_s)
        left_s = deadline - self._clock.monotonic()
        return await connection.request(key, body, timeout_s=left_s, at_most=at_most)

    async def connect(self, timeout_s: float) -> PeerConnection:
        """Return the connection; open one if there is none or it was idle for too long.

        Raises:
            CannotConnectError: It failed or took too long (the attempt then continues). During a
                delay it is raised only after `timeout_s`, so that retry loops do not spin.
        """
        connection = self._connection
        if connection is not None:
            if self._is_fresh(connection):
                return connection
            connection.abort("idle too long, or its login expires soon")
            self._connection = None
        if self._is_closed:
            raise CannotConnectError(str(self.address), "closed by us")
        now = self._clock.monotonic()
        if self._last_error is not None and now + timeout_s < self._not_before:
            reason = self._last_error.what
            await pause(timeout_s)
            raise CannotConnectError(str(self.address), reason)
        if self._attempt is None:
            self._attempt = asyncio.create_task(self._connect())
        done, _ = await asyncio.wait([self._attempt], timeout=max(0.0, timeout_s))
        if not done:
            raise CannotConnectError(
                str(self.address), f"not connected within {seconds_of(timeout_s)}"
            )
        (attempt,) = done
        if attempt.cancelled():
            raise CannotConnectError(str(self.address), "closed by us")
        outcome = attempt.result()
        if isinstance(outcome, PeerError):
            # A new error for each caller, because raising adds to its traceback.
            raise type(outcome)(outcome.peer, outcome.what)
        return outcome

    async def close(self) -> None:
        """Close after pending responses, and do not connect again."""
        self._is_closed = True
        if self._attempt is not None:
            self._attempt.cancel()
            await asyncio.wait([self._attempt])
        if self._connection is not None:
            await self._connection.close()

    def abort(self) -> None:
        """Close immediately, and do not connect again."""
        self._is_closed = True
        if self._attempt is not None:
            self._attempt.cancel()
        if self._connection is not None:
            self._connection.abort("closed by us")

    def _is_fresh(self, connection: PeerConnection) -> bool:
        if not connection.is_open:
            return False
        now = self._clock.monotonic()
        if connection.in_flight == 0 and now >= connection.login_ends:
            return False
        idle_s = now - connection.last_used
        return connection.in_flight > 0 or idle_s < self._settings.idle_s

    async def _connect(self) -> PeerConnection | PeerError:
        try:
            delay_s = self._not_before - self._clock.monotonic()
            if delay_s > 0:
                await pause(delay_s)
            connection = await PeerConnection.open(
                self.address,
                dialer=self._dialer,
                settings=self._settings,
                clock=self._clock,
                handshake=self._handshake,
                shared_blocks=self._shared_blocks,
            )
        except PeerError as error:
            self.failures += 1
            delay_s = self._settings.reconnect.delay_s(self.failures, self._random)
            self._not_before = self._clock.monotonic() + delay_s
            self._last_error = without_frames(error)
            return self._last_error
        finally:
            self._attempt = None
        if self._is_closed:
            connection.abort("closed by us")
            return CannotConnectError(str(self.address), "closed by us")
        self._connection = connection
        self.failures = 0
        self._not_before = 0.0
        self._last_error = None
        return connection
