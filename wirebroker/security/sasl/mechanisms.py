"""SASL mechanisms, the server's side: a client's messages in, a user's name out; no I/O.

Unknown SCRAM users get constant salts and iterations, in the forms and frequencies of real users
(sasl_state.py, codecs/scram_forms.py). They fail where a wrong password fails (Apache Kafka: one
message earlier).

Source: Kafka's PlainSaslServer and ScramSaslServer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hashes import are_same, keyed_digest, spread
from wirebroker.codecs.scram import (
    LEAST_ITERATIONS,
    SALT_BITS,
    ScramKeys,
    is_proved,
    parse_client_final,
    parse_client_first,
    salt_of,
    server_final,
    server_first,
    server_signature,
)
from wirebroker.codecs.scram_forms import form_at

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.codecs.scram import ClientFirst
    from wirebroker.codecs.scram_forms import ScramForms
    from wirebroker.security.sasl.token_logins import TokenLogin

_OTHER_USER: Final = (
    "Authentication failed: Client requested an authorization id that is different from username"
)


class NotProvedError(Exception):
    """A failed authentication.

    Attributes:
        said: The error message for the client; None for the generic one.
        passes: Whether it may succeed later. Then the connection is closed without an error, so
            that the client retries.
    """

    def __init__(self, reason: str, said: str | None = None, *, passes: bool = False) -> None:
        super().__init__(reason)
        self.said = said
        self.passes = passes


class Mechanism(Protocol):
    """The authentication of one client."""

    @property
    def user(self) -> str | None:
        """The authenticated user."""
        ...

    @property
    def is_for_thread(self) -> bool:
        """Whether the next step may block on files."""
        ...

    def step(self, message: bytes) -> bytes:
        """Return the response to the client's next message.

        Raises:
            NotProvedError: The authentication failed.
        """
        ...


class PlainMechanism:
    """PLAIN (RFC 4616): the client sends the password."""

    __slots__ = ("_key", "_passwords", "user")

    is_for_thread = False

    def __init__(self, passwords: Mapping[str, str], key: bytes) -> None:
        """Create it; `key` is a secret of this process for comparing digests of passwords."""
        self._passwords = passwords
        self._key = key
        self.user: str | None = None

    def step(self, message: bytes) -> bytes:
        """Check the password; return an empty response."""
        try:
            parts = message.decode().split("\0", 3)
        except UnicodeDecodeError:
            raise NotProvedError("the message is not UTF-8") from None
        if len(parts) != 3:
            raise NotProvedError("not a PLAIN message")
        authorization_id, user, password = parts
        if not user:
            raise NotProvedError("no user", "Authentication failed: username not specified")
        if not password:
            raise NotProvedError("no password", "Authentication failed: password not specified")
        expected = self._passwords.get(user)
        # Digests have equal length, so the time reveals nothing.
        is_same = are_same(self._digest(password), self._digest(expected or ""))
        if expected is None or not is_same:
            raise NotProvedError(
                f"user {user[:64]!r}: unknown, or the password is invalid",
                "Authentication failed: Invalid username or password",
            )
        if authorization_id and authorization_id != user:
            raise NotProvedError(
                f"user {user[:64]!r} requested another authorization id", _OTHER_USER
            )
        self.user = user
        return b""

    def _digest(self, password: str) -> bytes:
        return keyed_digest("sha256", self._key, password.encode())


class ScramMechanism:
    """SCRAM (RFC 5802): both sides prove that they know the password or its keys.

    With `tokenauth=true` (`is_by_token`) the name is a delegation token's id, and the user its
    owner; `expires_ms` is then the wall time at which the token expires.
    """

    __slots__ = (
        "_claimed",
        "_first",
        "_forms",
        "_keys",
        "_keys_of",
        "_nonce",
        "_number",
        "_salt_key",
        "_token_of",
        "_user",
        "expires_ms",
        "is_by_token",
        "user",
    )

    is_for_thread = False

    def __init__(
        self,
        number: int,
        keys_of: Callable[[str], ScramKeys | None],
        *,
        token_of: Callable[[str], TokenLogin | None],
        forms: Callable[[], ScramForms],
        nonce: str,
        salt_key: bytes,
    ) -> None:
        """Create it; `nonce` is unpredictable, `salt_key` a secret for salts of unknown users."""
        self._number = number
        self._keys_of = keys_of
        self._token_of = token_of
        self._forms = forms
        self._nonce = nonce
        self._salt_key = salt_key
        self._claimed = ""
        self._keys: ScramKeys | None = None
        # The messages so far, which proofs cover.
        self._first = ""
        self._user = ""  # once authenticated
        self.is_by_token = False
        self.expires_ms: int | None = None
        self.user: str | None = None

    def step(self, message: bytes) -> bytes:
        """Send the salt; then check the client's proof and send the server's."""
        try:
            return self._begin(message) if not self._first else self._end(message)
        except MalformedFrameError as error:
            raise NotProvedError(str(error)) from None

    def _begin(self, message: bytes) -> bytes:
        first_message = parse_client_first(message)
        self._claimed = self._user = first_message.user
        self.is_by_token = first_message.is_by_token
        if first_message.authorization_id and first_message.authorization_id != first_message.user:
            raise NotProvedError(
                f"user {first_message.user[:64]!r} requested another authorization id", _OTHER_USER
            )
        # Compute both for all users, so that the time reveals nothing.
        fake_keys, keys = self._keys_of_nobody(first_message.user), self._find(first_message)
        if keys is not None and keys.iterations >= LEAST_ITERATIONS:
            self._keys = keys
        self._nonce = first_message.nonce + self._nonce
        answer = server_first(self._nonce, self._keys or fake_keys)
        self._first = f"{first_message.bare},{answer}"
        return answer.encode()

    def _other_nonce(self, nonce: str) -> str:
        prefix = f"user {self._claimed[:64]!r}: "
        if nonce.endswith(self._nonce):  # starts with the client's own
            return prefix + (
                "the client sent its nonce twice, as librdkafka before 2.6.1 does; Apache Kafka"
                " refuses it too: update the client's librdkafka, or use PLAIN over TLS"
            )
        return prefix + "the client returned another nonce"

    def _find(self, first_message: ClientFirst) -> ScramKeys | None:
        if not first_message.is_by_token:
            return self._keys_of(first_message.user)
        token = self._token_of(first_message.user)
        if token is None:
            return None
        self._user, keys, self.expires_ms = token
        return keys

    def _end(self, message: bytes) -> bytes:
        final_message = parse_client_final(message)
        if final_message.nonce != self._nonce:
            raise NotProvedError(self._other_nonce(final_message.nonce))
        exchanged = f"{self._first},{final_message.unproved}".encode()
        fake_keys = self._keys_of_nobody(self._claimed)
        keys = self._keys or fake_keys
        if not is_proved(self._number, keys, final_message.proof, exchanged) or self._keys is None:
            kind = "delegation token" if self.is_by_token else "user"
            raise NotProvedError(
                f"{kind} {self._claimed[:64]!r}: unknown, or the password is invalid"
            )
        self.user = self._user
        return server_final(server_signature(self._number, keys, exchanged)).encode()

    def _keys_of_nobody(self, user: str) -> ScramKeys:
        """Return keys that no proof fits, with a constant salt for each user."""
        secret = keyed_digest("sha512", self._salt_key, f"{self._number}{user}".encode())
        # Tokens look like users that Kafka's tools create.
        forms: ScramForms = {} if self.is_by_token else self._forms()
        form = form_at(forms, int.from_bytes(secret[:8], "big"))
        salt = salt_of(int.from_bytes(secret[32:], "big") >> (256 - SALT_BITS))
        if form.salt_bytes:
            salt = spread(secret[32:], form.salt_bytes)
        size = {1: 32, 2: 64}[self._number]
        return ScramKeys(salt, bytes(size), bytes(size), form.iterations)
