"""SASL on a listener: before a client has authenticated it is served that and ApiVersions, no more.

    ApiVersions  ->  SaslHandshake v1  ->  SaslAuthenticate ...     ->  everything
                     SaslHandshake v0  ->  bare messages ...        ->  everything
    everything   ->  SaslHandshake, if logins end (connections.max.reauth.ms)  ->  as above

`SaslGuard` stands before the handlers of one connection (net/connection.py). A client that fails
is told so after connection.failed.authentication.delay.ms, and its connection is closed; so is one
that sends anything else, or too much of it. Who authenticates again has to be the same user, by the
same mechanism; once a login has ended the next request of another kind closes the connection.

Source: Kafka's SaslServerAuthenticator, KafkaChannel; KIP-43, KIP-152, KIP-368.
"""

from __future__ import annotations

import base64
import logging
import os
from typing import TYPE_CHECKING, Any, Final

from wirebroker.clock import pause
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.envelope import Principal
from wirebroker.codecs.errors import ErrorCode, MalformedFrameError
from wirebroker.codecs.frames import parse_request_header
from wirebroker.codecs.messages import decode_request, encode_response
from wirebroker.codecs.scram import SCRAM_NUMBERS
from wirebroker.net.protocol import frame_answer
from wirebroker.request import CloseConnectionError, Request
from wirebroker.security.mechanisms import NotProvedError, PlainMechanism, ScramMechanism
from wirebroker.security.oauth_mechanism import OAuthMechanism
from wirebroker.security.token_logins import TokenLogins
from wirebroker.security.tokens import TokenChecks
from wirebroker.session import ANONYMOUS, ENDING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.clock import Clock
    from wirebroker.config.listeners import ListenerConfig
    from wirebroker.config.oauth import OAuthSettings
    from wirebroker.config.sasl import SaslSettings
    from wirebroker.coordinator.controller.cluster_image import ClusterImage
    from wirebroker.net.dispatch import Dispatcher, Pending
    from wirebroker.request import Piece
    from wirebroker.security.mechanisms import Mechanism
    from wirebroker.session import Session

    Answer = list[Piece] | Pending | None

logger = logging.getLogger("wirebroker.security")

# A stock client sends five: ApiVersions, the handshake, three messages at most.
_MOST_REQUESTS: Final = 16
_FIRST_FRAMED_HANDSHAKE: Final = 1
_FIRST_LIFETIME: Final = 1
# Who authenticates again sooner is answered as if logins did not end, as by Kafka.
_SOONEST_AGAIN_S: Final = 1.0


class SaslDoors:
    """How clients authenticate on all listeners."""

    __slots__ = ("_checks", "_doors", "_key", "_tokens", "clock", "dispatcher", "image")

    def __init__(
        self,
        dispatcher: Dispatcher,
        image: Callable[[], ClusterImage],
        clock: Clock,
        *,
        token_secret: str | None = None,
    ) -> None:
        """Begin without listeners.

        Args:
            dispatcher: Serves those who are known.
            image: Has the users of SCRAM, and delegation tokens.
            clock: Says when logins end.
            token_secret: The key of delegation tokens; None: nobody logs in by one.
        """
        self.dispatcher = dispatcher
        self.image = image
        self.clock = clock
        self._key = os.urandom(32)
        self._tokens = TokenLogins(token_secret, image, clock, salt_key=self._key)
        self._doors: dict[str, SaslSettings] = {}
        self._checks: dict[OAuthSettings, TokenChecks] = {}

    def use_listeners(self, listeners: Iterable[ListenerConfig]) -> None:
        """Go by other settings, from the next connection on."""
        self._doors = {each.name: each.sasl for each in listeners if each.sasl is not None}
        wanted = {each.oauth for each in self._doors.values() if each.oauth is not None}
        # Those that stay keep the keys that they have read.
        self._checks = {
            each: self._checks.get(each) or _checks(each, self.clock) for each in wanted
        }

    def guard(self, listener_name: str) -> SaslGuard | None:
        """Return what stands before the handlers of a new connection; None: it is open."""
        settings = self._doors.get(listener_name)
        return None if settings is None else SaslGuard(self, settings)

    def mechanism(self, name: str, settings: SaslSettings) -> Mechanism:
        """Begin with a mechanism that is enabled."""
        if name == "OAUTHBEARER":
            assert settings.oauth is not None, "it is enabled"
            # A connection may be older than the settings in force.
            checks = self._checks.get(settings.oauth) or _checks(settings.oauth, self.clock)
            return OAuthMechanism(checks)
        number = SCRAM_NUMBERS.get(name)
        if number is None:
            return PlainMechanism(settings.passwords, self._key)
        return ScramMechanism(
            number,
            lambda user: self.image().scram_user(user, number),
            token_of=lambda token_id: self._tokens.find(token_id, number),
            nonce=base64.urlsafe_b64encode(os.urandom(24)).decode("ascii"),
            salt_key=self._key,
        )


class SaslGuard:
    """Stands before the handlers of one connection."""

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
        "_requests",
        "_settings",
        "_what",
        "_wrong_mechanism",
    )

    # _mechanism is not None between a handshake and the end of what it began.

    def __init__(self, doors: SaslDoors, settings: SaslSettings) -> None:
        self._doors = doors
        self._settings = settings
        self._on_known: Callable[[], None] | None = None
        self._is_known = False
        self._what = "authentication"
        self._requests = 0
        self._mechanism: Mechanism | None = None
        self._mechanism_name = ""
        self._wrong_mechanism: str | None = None
        self._has_bare_messages = False
        # On the monotonic clock; None: the login does not end.
        self._ends_s: float | None = None
        self._login_ms: int | None = None
        self._began_again_s = float("-inf")

    @property
    def most_bytes(self) -> int:
        """Of a request before its client is known."""
        return self._settings.most_bytes

    def when_known(self, callback: Callable[[], None] | None) -> None:
        """Call back once, when the client is known; None: not any more."""
        self._on_known = callback

    def __call__(self, frame: memoryview, session: Session) -> Answer:
        """Serve a frame, or what it takes to be served.

        Raises:
            MalformedFrameError: It is none, or of a kind that has to wait.
            CloseConnectionError: The login has ended, or is not going anywhere.
        """
        if self._is_known:
            if self._ends_s is None:
                return self._doors.dispatcher(frame, session)
            return self._serve_known(frame, session, self._ends_s)
        self._requests += 1
        if self._requests > _MOST_REQUESTS:
            raise CloseConnectionError("it sends many requests and does not authenticate")
        if self._mechanism is not None and self._has_bare_messages:
            return self._take_bare_message(frame, session)
        request = _request_of(frame, session)
        if self._mechanism is not None:
            return self._take_message(request)
        if request.key is ApiKey.API_VERSIONS:
            return self._doors.dispatcher(frame, session)
        return self._shake_hands(request)

    # --- once it is known ---

    def _serve_known(self, frame: memoryview, session: Session, ends_s: float) -> Answer:
        now = self._doors.clock.monotonic()
        if (
            int.from_bytes(frame[:2], "big") == ApiKey.SASL_HANDSHAKE
            and now - self._began_again_s >= _SOONEST_AGAIN_S
        ):
            self._began_again_s = now
            self._is_known = False
            self._what = "re-authentication"
            self._requests = 1
            return self._shake_hands(_request_of(frame, session))
        if now >= ends_s:
            raise CloseConnectionError("its login has ended (connections.max.reauth.ms)")
        return self._doors.dispatcher(frame, session)

    # --- on the way there ---

    def _shake_hands(self, request: Request) -> Answer:
        if request.key is not ApiKey.SASL_HANDSHAKE:
            raise MalformedFrameError(f"it sends {request.key.name} before it has authenticated")
        wanted = _body_of(request).mechanism
        enabled = list(self._settings.mechanisms)
        if wanted not in enabled:
            error = ErrorCode.UNSUPPORTED_SASL_MECHANISM
            why = f"there is no mechanism {wanted[:64]!r} here"
            return self._fail(request, {"error_code": error, "mechanisms": enabled}, why)
        if self._mechanism_name not in {"", wanted}:
            self._wrong_mechanism = (
                f"SASL mechanism '{wanted}' requested by client is not supported for "
                f"re-authentication of mechanism '{self._mechanism_name}'"
            )
        else:
            self._mechanism_name = wanted
        self._mechanism = self._doors.mechanism(wanted, self._settings)
        self._has_bare_messages = request.version < _FIRST_FRAMED_HANDSHAKE
        return _answer(request, {"error_code": ErrorCode.NONE, "mechanisms": enabled})

    def _take_message(self, request: Request) -> Answer:
        if request.key is not ApiKey.SASL_AUTHENTICATE:
            raise MalformedFrameError(f"it sends {request.key.name} in place of SaslAuthenticate")
        try:
            answer = self._step(bytes(_body_of(request).auth_bytes), request.session)
        except NotProvedError as error:
            said = error.said or (
                f"Authentication failed during {self._what} due to invalid credentials with "
                f"SASL mechanism {self._mechanism_name}"
            )
            code = ErrorCode.SASL_AUTHENTICATION_FAILED
            body = {"error_code": code, "error_message": said, "auth_bytes": b""}
            return self._fail(request, body, str(error))
        done: dict[str, Any] = {
            "error_code": ErrorCode.NONE,
            "error_message": None,
            "auth_bytes": answer,
        }
        if request.version >= _FIRST_LIFETIME:
            done["session_lifetime_ms"] = (self._login_ms or 0) if self._is_known else 0
        return _answer(request, done)

    def _take_bare_message(self, frame: memoryview, session: Session) -> Answer:
        """Serve a message without header, as clients before KIP-152 send them."""
        try:
            answer = self._step(bytes(frame), session)
        except NotProvedError as error:
            request = Request(ApiKey.SASL_AUTHENTICATE, 0, 0, None, frame, 0, session)
            return self._doors.dispatcher.later(request, self._close_later(str(error)))
        return [len(answer).to_bytes(4, "big") + answer]

    def _step(self, message: bytes, session: Session) -> bytes:
        """Go on with the mechanism; if that was its end, the client is known.

        Raises:
            NotProvedError: It has failed.
        """
        if self._wrong_mechanism is not None:
            raise NotProvedError("another mechanism than before", self._wrong_mechanism)
        assert self._mechanism is not None
        answer = self._mechanism.step(message)
        user = self._mechanism.user
        if user is None:
            return answer
        if session.principal is not ANONYMOUS and session.principal.name != user:
            raise NotProvedError(
                "another user than before",
                "Cannot change principals during re-authentication from "
                f"User.{session.principal.name}: User.{user}",
            )
        self._login_ms = self._lifetime_ms(self._mechanism)
        is_by_token = isinstance(self._mechanism, ScramMechanism) and self._mechanism.is_by_token
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
        """Return after how long a login ends: with its token, or sooner; None: it does not."""
        longest_ms = self._settings.reauthentication_ms[self._mechanism_name] or None
        expires_ms: int | None = None
        if isinstance(mechanism, OAuthMechanism | ScramMechanism):
            expires_ms = mechanism.expires_ms
        if expires_ms is None:
            return longest_ms
        left_ms = max(0, expires_ms - self._doors.clock.now_ms())
        return left_ms if longest_ms is None else min(left_ms, longest_ms)

    # --- failing ---

    def _fail(self, request: Request, body: dict[str, Any], why: str) -> Pending:
        session = request.session
        logger.info(
            "closing %s on %s: %s failed: %s",
            session.peer,
            session.listener_name,
            self._what,
            why,
        )
        return self._doors.dispatcher.later(request, self._tell_later(request, body))

    async def _tell_later(self, request: Request, body: dict[str, Any]) -> list[Piece]:
        await pause(self._settings.failure_delay_ms / 1000)
        request.session.pauses |= ENDING
        return [encode_response(request.key, request.version, body)]

    async def _close_later(self, why: str) -> list[Piece]:
        await pause(self._settings.failure_delay_ms / 1000)
        raise CloseConnectionError(f"{self._what} failed: {why}")


def check_tokens(listeners: Iterable[ListenerConfig], clock: Clock) -> None:
    """Read the keys of tokens once, so that what is wrong with them is said at the start.

    Raises:
        ConfigError: They cannot be read, or what reads them is missing.
    """
    for each in listeners:
        if each.sasl is not None and each.sasl.oauth is not None:
            TokenChecks(each.sasl.oauth, clock).load()


def _checks(settings: OAuthSettings, clock: Clock) -> TokenChecks:
    if settings.keys_file is None:
        logger.warning(
            "tokens of OAUTHBEARER are not signed: whoever can connect is whoever they say "
            "(sasl.oauthbearer.jwks.endpoint.url names keys)"
        )
    return TokenChecks(settings, clock)


def _request_of(frame: memoryview, session: Session) -> Request:
    key, version, correlation_id, client_id, position = parse_request_header(frame)
    request = Request(ApiKey(key), version, correlation_id, client_id, frame, position, session)
    served = API_VERSIONS.get(request.key)
    is_served = served is not None and served.min_version <= version <= served.max_version
    if not is_served and request.key is not ApiKey.API_VERSIONS:
        raise MalformedFrameError(f"{request.key.name} version {version} is not served")
    return request


def _body_of(request: Request) -> Any:
    return decode_request(request.key, request.version, request.frame, request.position)


def _answer(request: Request, body: dict[str, Any]) -> list[Piece]:
    encoded = encode_response(request.key, request.version, body)
    is_flexible = request.version >= API_VERSIONS[request.key].first_flexible
    return frame_answer(request.correlation_id, [encoded], is_flexible=is_flexible)
