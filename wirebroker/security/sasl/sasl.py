"""SASL on a listener: until it has authenticated, a client may only log in or send ApiVersions.

    ApiVersions  ->  SaslHandshake v1  ->  SaslAuthenticate ...     ->  everything
                     SaslHandshake v0  ->  bare messages ...        ->  everything
    everything   ->  SaslHandshake, if logins end (connections.max.reauth.ms)  ->  as above

A client that fails gets an error after connection.failed.authentication.delay.ms, and is
disconnected, like one that sends other or too many requests. Once a login has expired, any request
besides re-authentication closes the connection.

Source: Kafka's SaslServerAuthenticator, KafkaChannel; KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Protocol

from wirebroker.base.clock import pause
from wirebroker.base.log_bound import about
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.frames import parse_request_header
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.net.frames.protocol import frame_answer
from wirebroker.request.request import CloseConnectionError, Request
from wirebroker.request.session import ANONYMOUS, ENDING
from wirebroker.security.sasl.mechanisms import NotProvedError, ScramMechanism
from wirebroker.security.sasl.oauth_mechanism import OAuthMechanism

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Clock
    from wirebroker.config.security.sasl import SaslSettings
    from wirebroker.net.dispatch import Dispatcher, Served
    from wirebroker.net.pending import Pending
    from wirebroker.request.request import Piece
    from wirebroker.request.session import Session
    from wirebroker.security.sasl.login_queue import LoginQueue
    from wirebroker.security.sasl.mechanisms import Mechanism


logger = logging.getLogger("wirebroker.security")

# A stock client sends at most five.
_MOST_REQUESTS: Final = 16
_FIRST_FRAMED_HANDSHAKE: Final = 1
_FIRST_LIFETIME: Final = 1
# An earlier SaslHandshake is treated as if logins did not expire, as in Kafka.
_SOONEST_AGAIN_S: Final = 1.0


class SharedSaslState(Protocol):
    """What the logins of all connections share."""

    @property
    def dispatcher(self) -> Dispatcher:
        """Serves requests of authenticated clients."""
        ...

    @property
    def clock(self) -> Clock:
        """For the end of sessions."""
        ...

    @property
    def logins(self) -> LoginQueue:
        """Steps that may block."""
        ...

    def mechanism(self, name: str, settings: SaslSettings, /) -> Mechanism:
        """Return a new instance of an enabled mechanism."""
        ...


class SaslGuard:
    """Authenticates the client of one connection."""

    __slots__ = (
        "_began_again_s",
        "_doors",
        "_ends_s",
        "_has_bare_messages",
        "_is_known",
        "_login_ms",
        "_mechanism",
        "_mechanism_name",
        "_on_known",
        "_purpose",
        "_requests",
        "_settings",
        "_wrong_mechanism",
    )

    # _mechanism is set exactly between a handshake and the end of that login.

    def __init__(self, doors: SharedSaslState, settings: SaslSettings) -> None:
        self._doors = doors
        self._settings = settings
        self._on_known: Callable[[], None] | None = None
        self._is_known = False
        self._purpose = "authentication"
        self._requests = 0
        self._mechanism: Mechanism | None = None
        self._mechanism_name = ""
        self._wrong_mechanism: str | None = None
        self._has_bare_messages = False
        # Monotonic; None if the login does not expire.
        self._ends_s: float | None = None
        self._login_ms: int | None = None
        self._began_again_s = float("-inf")

    @property
    def most_bytes(self) -> int:
        """The largest request of an unauthenticated client."""
        return self._settings.most_bytes

    def when_known(self, callback: Callable[[], None] | None) -> None:
        """Set, or remove by None, the callback for the client's authentication."""
        self._on_known = callback

    def __call__(self, frame: memoryview, session: Session) -> Served:
        """Serve a frame, or continue the login.

        Raises:
            MalformedFrameError: It is malformed, or not allowed before the login.
            CloseConnectionError: The login has expired, or makes no progress.
        """
        if self._is_known:
            if self._ends_s is None:
                return self._doors.dispatcher(frame, session)
            return self._serve_known(frame, session, self._ends_s)
        self._requests += 1
        if self._requests > _MOST_REQUESTS:
            raise CloseConnectionError("it sends too many requests without authenticating")
        if self._mechanism is not None and self._has_bare_messages:
            return self._take_bare_message(frame, session)
        request = _request_of(frame, session)
        if self._mechanism is not None:
            return self._take_message(request)
        if request.key is ApiKey.API_VERSIONS:
            return self._doors.dispatcher(frame, session)
        return self._handshake(request)

    def _serve_known(self, frame: memoryview, session: Session, ends_s: float) -> Served:
        now = self._doors.clock.monotonic()
        if (
            int.from_bytes(frame[:2], "big") == ApiKey.SASL_HANDSHAKE
            and now - self._began_again_s >= _SOONEST_AGAIN_S
        ):
            self._began_again_s = now
            self._is_known = False
            self._purpose = "re-authentication"
            self._requests = 1
            return self._handshake(_request_of(frame, session))
        if now >= ends_s:
            raise CloseConnectionError("its login has expired (connections.max.reauth.ms)")
        return self._doors.dispatcher(frame, session)

    def _handshake(self, request: Request) -> Served:
        if request.key is not ApiKey.SASL_HANDSHAKE:
            raise MalformedFrameError(f"it sends {request.key.name} before it has authenticated")
        mechanism_name = _body_of(request).mechanism
        enabled = list(self._settings.mechanisms)
        if mechanism_name not in enabled:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            reason = f"mechanism {mechanism_name[:64]!r} is not enabled"
            return self._fail(request, {"error_code": error, "mechanisms": enabled}, reason)
        if self._mechanism_name not in {"", mechanism_name}:
            self._wrong_mechanism = (
                f"SASL mechanism '{mechanism_name}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._mechanism_name}'"
            )
        else:
            self._mechanism_name = mechanism_name
        self._mechanism = self._doors.mechanism(mechanism_name, self._settings)
        self._has_bare_messages = request.version < _FIRST_FRAMED_HANDSHAKE
        return _answer(request, {"error_code": ErrorCode.NONE, "mechanisms": enabled})

    def _take_message(self, request: Request) -> Served:
        if request.key is not ApiKey.SASL_AUTHENTICATE:
            raise MalformedFrameError(f"it sends {request.key.name} instead of SaslAuthenticate")
        message = bytes(_body_of(request).auth_bytes)
        if self._mechanism is not None and self._mechanism.is_for_thread:
            slow = self._take_in_thread(self._mechanism, request, message)
            return self._doors.dispatcher.later(request, slow)
        try:
            answer = self._step(message, request.session)
        except NotProvedError as error:
            return self._fail(request, self._refusal(error), str(error))
        return _answer(request, self._accepted(request, answer))

    async def _take_in_thread(
        self, mechanism: Mechanism, request: Request, message: bytes
    ) -> list[Piece] | None:
        try:
            answer = await self._step_in_thread(mechanism, message, request.session)
        except NotProvedError as error:
            if error.passes:
                await self._close_later(request.session, str(error))
                return None
            self._log_failure(request.session, str(error))
            return await self._log_later(request, self._refusal(error))
        return [encode_response(request.key, request.version, self._accepted(request, answer))]

    def _accepted(self, request: Request, answer: bytes) -> dict[str, Any]:
        done: dict[str, Any] = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "auth_bytes": answer,
        }
        if request.version >= _FIRST_LIFETIME:
            done["session_lifetime_ms"] = (self._login_ms or 0) if self._is_known else 0
        return done

    def _refusal(self, error: NotProvedError) -> dict[str, Any]:
        message = error.said or (
            f"Authentication failed during {self._purpose} due to invalid credentials with "
            f"SASL mechanism {self._mechanism_name}"
        )
        code = ErrorCode.SASL_AUTHENTICATION_FAILED
        return {"error_code": code, "error_message": message, "auth_bytes": b""}

    def _take_bare_message(self, frame: memoryview, session: Session) -> Served:
        """Serve a message of clients before KIP-152."""
        request = Request(ApiKey.SASL_AUTHENTICATE, 0, 0, None, frame, 0, session)
        if self._mechanism is not None and self._mechanism.is_for_thread:
            slow = self._take_bare_in_thread(self._mechanism, bytes(frame), session)
            return self._doors.dispatcher.later(request, slow, is_whole=True)
        try:
            answer = self._step(bytes(frame), session)
        except NotProvedError as error:
            return self._doors.dispatcher.later(request, self._close_later(session, str(error)))
        return [_bare(answer)]

    async def _take_bare_in_thread(
        self, mechanism: Mechanism, message: bytes, session: Session
    ) -> list[Piece] | None:
        try:
            return [_bare(await self._step_in_thread(mechanism, message, session))]
        except NotProvedError as error:
            await self._close_later(session, str(error))
            return None

    def _step(self, message: bytes, session: Session) -> bytes:
        mechanism = self._right_mechanism()
        return self._after_step(mechanism, mechanism.step(message), session)

    async def _step_in_thread(
        self, mechanism: Mechanism, message: bytes, session: Session
    ) -> bytes:
        self._right_mechanism()
        address = session.peer.rpartition(":")[0]
        answer = await self._doors.logins.wait(
            address, partial(mechanism.step, message), partial(self._log_given_up, session)
        )
        return self._after_step(mechanism, answer, session)

    def _right_mechanism(self) -> Mechanism:
        if self._wrong_mechanism is not None:
            raise NotProvedError("the mechanism has changed", self._wrong_mechanism)
        assert self._mechanism is not None
        return self._mechanism

    def _after_step(self, mechanism: Mechanism, answer: bytes, session: Session) -> bytes:
        user = mechanism.user
        if user is None:
            return answer
        if session.principal is not ANONYMOUS and session.principal.name != user:
            raise NotProvedError(
                "the user has changed",
                "Cannot change principals during re-authentication from "
                f"User.{session.principal.name}: User.{user}",
            )
        self._login_ms = self._lifetime_ms(mechanism)
        is_by_token = isinstance(mechanism, ScramMechanism) and mechanism.is_by_token
        self._mechanism = None
        self._is_known = True
        session.principal = Principal("User", user, is_by_token)
        self._ends_s = None
        if self._login_ms is not None:
            self._ends_s = self._doors.clock.monotonic() + self._login_ms / 1000
        if self._on_known is not None:
            self._on_known()
        return answer

    def _lifetime_ms(self, mechanism: Mechanism) -> int | None:
        longest_ms = self._settings.reauthentication_ms[self._mechanism_name] or None
        expires_ms: int | None = None
        if isinstance(mechanism, OAuthMechanism | ScramMechanism):
            expires_ms = mechanism.expires_ms
        if expires_ms is None:
            return longest_ms
        left_ms = max(0, expires_ms - self._doors.clock.now_ms())
        return left_ms if longest_ms is None else min(left_ms, longest_ms)

    def _fail(self, request: Request, body: dict[str, Any], reason: str) -> Pending:
        self._log_failure(request.session, reason)
        return self._doors.dispatcher.later(request, self._log_later(request, body))

    def _log_given_up(self, session: Session, error: BaseException) -> None:
        self._log_failure(session, f"{error}; its client has disconnected")

    def _log_failure(self, session: Session, reason: str) -> None:
        logger.info(
            "closing %s on %s: %s failed: %s",
            session.peer,
            session.listener_name,
            self._purpose,
            reason,
            extra=about(session.peer, session.listener_name),
        )

    async def _log_later(self, request: Request, body: dict[str, Any]) -> list[Piece]:
        await pause(self._settings.failure_delay_ms / 1000)
        request.session.pauses |= ENDING
        return [encode_response(request.key, request.version, body)]

    async def _close_later(self, session: Session, reason: str) -> None:
        """Close without a response; log it first, since the client may disconnect."""
        self._log_failure(session, reason)
        await pause(self._settings.failure_delay_ms / 1000)
        session.pauses |= ENDING


def _request_of(frame: memoryview, session: Session) -> Request:
    key, version, correlation_id, client_id, position = parse_request_header(frame)
    request = Request(ApiKey(key), version, correlation_id, client_id, frame, position, session)
    served = API_VERSIONS.get(request.key)
    is_served = served is not None and served.min_version <= version <= served.max_version
    if not is_served and request.key is not ApiKey.API_VERSIONS:
        raise MalformedFrameError(f"{request.key.name} version {version} is not supported")
    return request


def _body_of(request: Request) -> Any:
    return decode_request(request.key, request.version, request.frame, request.position)


def _bare(answer: bytes) -> bytes:
    return len(answer).to_bytes(4, "big") + answer


def _answer(request: Request, body: dict[str, Any]) -> list[Piece]:
    encoded = encode_response(request.key, request.version, body)
    is_flexible = request.version >= API_VERSIONS[request.key].first_flexible
    return frame_answer(request.correlation_id, [encoded], is_flexible=is_flexible)
