"""A connection to one peer: negotiated versions, and pipelined requests with deadlines.

    connection = await PeerConnection.open(address, dialer=TcpDialer(), settings=…, clock=…)
    answer = await connection.request(ApiKey.FETCH, {...}, timeout_s=1.0)
    await connection.close()

A request needs no task: its caller awaits a future, and one timer watches the earliest deadline.

A peer responds in the order of requests. So an unexpected correlation id or an expired deadline
closes the connection, because all later responses would be wrong or late. A canceled request stays
in flight until its response is dropped.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from wirebroker.base.threads import LONGEST_ON_LOOP_BYTES, coding, in_thread
from wirebroker.codecs.client_frames import request_header
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.messages import decode_response, encode_request, response_message
from wirebroker.net.client.errors import (
    BrokenProtocolError,
    CannotConnectError,
    ConnectionLostError,
    LongResponseError,
    PeerError,
    RequestTimedOutError,
    UnsupportedVersionError,
    reason_of,
    seconds_of,
)
from wirebroker.net.client.fair_semaphore import FairSemaphore
from wirebroker.net.client.requests_in_flight import RequestsInFlight
from wirebroker.net.client.response_frames import LongFrameError, ResponseFrames
from wirebroker.net.client.versions import PeerVersions, request_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.values import Struct
    from wirebroker.net.client.settings import ClientSettings, PeerAddress
    from wirebroker.net.client.transport import Dialer, Transport
    from wirebroker.net.frames.frame_buffer import FrameBlocks

Body: TypeAlias = "Mapping[str, Any] | Struct | Callable[[int], Mapping[str, Any] | Struct]"

_CLOSING_S: Final = 1.0


class Handshake(Protocol):
    """SASL authentication, between ApiVersions and other requests."""

    async def __call__(self, connection: PeerConnection) -> None:
        """Authenticate by SaslHandshake and SaslAuthenticate.

        Raises:
            AuthenticationFailedError: The peer refuses.
            PeerError: A request failed.
        """
        ...


class PeerConnection:
    """A connection that this node has opened.

    Attributes:
        last_used: When the last request was sent, in monotonic seconds.
        login_ends: When to replace it, before the peer requires a new login.
    """

    __slots__ = (
        "_clock",
        "_end",
        "_frames",
        "_is_closing",
        "_is_set_up",
        "_loop",
        "_places",
        "_quiet",
        "_requests",
        "_settings",
        "_transport",
        "_versions",
        "_watchdog",
        "_watched",
        "address",
        "last_used",
        "login_ends",
    )

    # _end is not None => nothing is or will be in flight.

    def __init__(
        self,
        address: PeerAddress,
        settings: ClientSettings,
        clock: Clock,
        shared_blocks: FrameBlocks | None = None,
    ) -> None:
        self.address = address
        self._settings = settings
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._frames = ResponseFrames(settings.max_response_bytes, shared_blocks)
        self._transport: Transport | None = None
        self._versions: PeerVersions | None = None
        self._requests = RequestsInFlight()
        self._places = FairSemaphore(settings.max_in_flight)
        self._watchdog: asyncio.TimerHandle | None = None
        self._watched = 0.0
        self._is_closing = False
        self._is_set_up = False
        self._end: PeerError | None = None
        # Done after the last response or at the end; `close` waits for it.
        self._quiet: asyncio.Future[None] | None = None
        self.last_used = clock.monotonic()
        self.login_ends = float("inf")

    @classmethod
    async def open(
        cls,
        address: PeerAddress,
        *,
        dialer: Dialer,
        settings: ClientSettings,
        clock: Clock,
        handshake: Handshake | None = None,
        shared_blocks: FrameBlocks | None = None,
    ) -> PeerConnection:
        """Connect to a peer, request its versions, and authenticate.

        `shared_blocks` is memory for long responses that several connections of a loop use.

        Raises:
            CannotConnectError: It failed or timed out.
            AuthenticationFailedError: The peer refused the handshake.
        """
        connection = cls(address, settings, clock, shared_blocks)
        try:
            async with asyncio.timeout(settings.connect_timeout_s):
                await connection._set_up(dialer, handshake)
        except CannotConnectError:
            raise
        except PeerError as error:
            raise CannotConnectError(error.peer, error.what) from error
        except (OSError, KafkaError, MalformedFrameError) as fault:
            # A timeout, which is an OSError, has no text.
            reason = (
                reason_of(fault) or f"no connection within {seconds_of(settings.connect_timeout_s)}"
            )
            raise CannotConnectError(str(address), reason) from fault
        finally:
            if not connection._is_set_up:
                connection.abort("setup failed")
        return connection

    @property
    def is_open(self) -> bool:
        """Whether requests can be sent."""
        return self._end is None and not self._is_closing

    @property
    def versions(self) -> PeerVersions:
        """The peer's versions."""
        assert self._versions is not None, "the connection is not set up"
        return self._versions

    @property
    def local_host(self) -> str:
        """This node's address."""
        assert self._transport is not None
        return self._transport.local_host

    @property
    def in_flight(self) -> int:
        """Number of requests without a response, also canceled ones."""
        return len(self._requests)

    def ends_after(self, lifetime_s: float) -> None:
        """Set the lifetime of the login (called by the handshake)."""
        self.login_ends = self._clock.monotonic() + lifetime_s

    # --- requests ---

    def version_of(self, key: ApiKey, at_most: int | None = None) -> int:
        """Return the highest common version, not above `at_most`.

        Raises:
            UnsupportedVersionError: There is none.
        """
        version = self.versions.highest(key, at_most)
        if version is None:
            limit = "" if at_most is None else f" up to {at_most}"
            reason = f"no common version of {key.name}{limit}"
            raise UnsupportedVersionError(str(self.address), reason)
        return version

    async def request(
        self,
        key: ApiKey,
        body: Body,
        *,
        timeout_s: float | None = None,
        at_most: int | None = None,
    ) -> Any:
        """Send a request in the highest common version and return its decoded response.

        The timeout includes the wait for a place in flight. Fields missing in `body` default as in
        the schema. The caller checks the response's error codes. Record batches in it are
        memoryviews, which stay valid.

        Raises:
            PeerError: There is no response.
        """
        version = self.version_of(key, at_most)
        value = body(version) if callable(body) else body
        data = encode_request(key, version, value)
        answer = await self.exchange(key, version, data, timeout_s=timeout_s)
        try:
            if len(answer) <= LONGEST_ON_LOOP_BYTES or response_message(key).has_records:
                return decode_response(key, version, answer, keep_views=True)
            return await in_thread(coding(len(answer)), decode_response, key, version, answer)
        except MalformedFrameError as error:
            raise self._break_off(error) from error

    async def exchange(
        self, key: ApiKey, version: int, body: bytes, *, timeout_s: float | None = None
    ) -> memoryview:
        """Send a request body and return the response's, which is never overwritten.

        Raises:
            PeerError: There is no response.
        """
        if timeout_s is None:
            timeout_s = self._settings.request_timeout_s
        if timeout_s <= 0:  # would end the connection immediately
            raise RequestTimedOutError(str(self.address), f"no time left for {key.name}")
        deadline = self._clock.monotonic() + timeout_s
        try:
            await self._places.take(timeout_s)
        except TimeoutError as error:
            reason = f"{key.name} timed out while {self.in_flight} others were in flight"
            raise RequestTimedOutError(str(self.address), reason) from error
        if not self.is_open:
            self._places.give_back()
            raise self._refusal()
        outcome = await self._send(key, version, body, deadline)
        if isinstance(outcome, PeerError):
            raise outcome
        return outcome

    def _send(
        self, key: ApiKey, version: int, body: bytes, deadline: float
    ) -> asyncio.Future[memoryview | PeerError]:
        assert self._transport is not None
        waiter: asyncio.Future[memoryview | PeerError] = self._loop.create_future()
        correlation_id = self._requests.add(key, version, deadline, waiter)
        head = request_header(key, version, correlation_id, self._settings.client_id.encode())
        self.last_used = self._clock.monotonic()
        self._transport.write((len(head) + len(body)).to_bytes(4) + head + body)
        self._watch()
        return waiter

    # --- responses (called by the transport) ---

    def get_buffer(self) -> memoryview:
        """Return memory to receive into."""
        return self._frames.get_buffer()

    def buffer_updated(self, count: int) -> None:
        """Deliver the completed responses."""
        self._frames.buffer_updated(count)
        try:
            while self._end is None and (frame := self._frames.next_frame()) is not None:
                self._requests.answer(frame)
                self._places.give_back()
        except MalformedFrameError as error:
            self._break_off(error)
        except OSError as fault:
            self.abort(f"cannot allocate memory for the response: {fault}")
        if not self._requests:
            self._become_quiet()

    # --- deadlines ---

    def _watch(self) -> None:
        """Set the timer to the earliest deadline unless it ends earlier."""
        earliest = self._requests.earliest_deadline()
        if earliest is None:
            return
        if self._watchdog is not None:
            if self._watched <= earliest:
                return
            self._watchdog.cancel()
        self._watched = earliest
        delay_s = max(0.0, earliest - self._clock.monotonic())
        self._watchdog = self._loop.call_later(delay_s, self._check_deadlines)

    def _check_deadlines(self) -> None:
        self._watchdog = None
        reason = self._requests.time_out(self._clock.monotonic(), str(self.address))
        if reason is None:
            self._watch()
        else:
            self.abort(reason)

    # --- setup ---

    async def _set_up(self, dialer: Dialer, handshake: Handshake | None) -> None:
        host, port = self.address
        try:
            self._transport = await dialer.dial(host, port, self)
        except (ValueError, OverflowError) as fault:
            # IDNA cannot encode the name (an empty or overlong label), or the port is invalid.
            reason = "invalid host name or port"
            raise CannotConnectError(str(self.address), reason) from fault
        if self._end is not None:
            self._transport.close()
            raise self._end
        self._versions = await request_versions(self.exchange)
        if handshake is not None:
            await handshake(self)
        self._is_set_up = True

    # --- the end ---

    async def close(self, timeout_s: float = _CLOSING_S) -> None:
        """Close after pending responses or the timeout; send nothing more."""
        self._is_closing = True
        self._places.close()
        if self._requests:
            self._quiet = self._loop.create_future()
            await asyncio.wait([self._quiet], timeout=timeout_s)
        self.abort("closed by us")

    def abort(self, reason: str) -> None:
        """Close now; pending requests fail with a ConnectionLostError. Idempotent."""
        self._finish(ConnectionLostError(str(self.address), reason, may_have_arrived=True))

    def lost(self, error: Exception | None) -> None:
        """Handle the transport's end."""
        reason = "the peer closed the connection"
        if error is not None:
            reason = f"the connection was lost: {reason_of(error)}"
        self._finish(ConnectionLostError(str(self.address), reason, may_have_arrived=True))

    def _break_off(self, fault: MalformedFrameError) -> BrokenProtocolError:
        kind = LongResponseError if isinstance(fault, LongFrameError) else BrokenProtocolError
        error = kind(str(self.address), str(fault), may_have_arrived=True)
        self._finish(error)
        return error

    def _finish(self, error: PeerError) -> None:
        if self._end is not None:
            return
        self._end = error
        if self._watchdog is not None:
            self._watchdog.cancel()
        if self._transport is not None:
            self._transport.close()
        for _ in range(self._requests.end(error)):
            self._places.give_back()
        self._places.close()
        self._become_quiet()

    def _refusal(self) -> ConnectionLostError:
        reason = "closed by us" if self._end is None else self._end.what
        return ConnectionLostError(str(self.address), reason)

    def _become_quiet(self) -> None:
        if self._quiet is not None and not self._quiet.done():
            self._quiet.set_result(None)
