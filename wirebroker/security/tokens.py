"""Bearer tokens (JWT, RFC 7519): who made them, for whom, until when.

    signed      one of the keys in a file, or of a web server, has signed it: RS, PS, ES and
                EdDSA; never a shared secret, never `none`
    unsecured   nobody has signed it (RFC 7515, appendix A.5): for tests

A file of keys is looked at with each token, and read again when it has changed: a new key counts
at once. Reading one of 1 MiB takes 25 ms; that is for a thread (`must_read`).

Times are compared here, by the broker's clock. The door of PyJWT, which is loaded if tokens are
signed.

Source: Kafka's BrokerJwtValidator, OAuthBearerUnsecuredJws, OAuthBearerValidationUtils.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import json
import logging
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from wirebroker.config import ConfigError
from wirebroker.security.web import Ending, WebAddress, WebError, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.clock import Clock
    from wirebroker.config.oauth import OAuthSettings

logger = logging.getLogger("wirebroker.security")

# When it was written, how long it is, which file it is.
_Look: TypeAlias = tuple[int, int, int]
_ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
# Tokens are a few kilobytes.
_LONGEST_BYTES: Final = 64 << 10
# How long a server of keys may take to connect, and then to answer.
_ANSWER_S: Final = 10.0
_LONGEST_FILE_BYTES: Final = 1 << 20


class BadTokenError(Exception):
    """A token that is not believed; the text is for the log, the status for the client."""

    def __init__(self, why: str, status: str = "invalid_token") -> None:
        super().__init__(why)
        self.status = status


class TokenOwner(NamedTuple):
    """Whom a token names, and until when (wall time)."""

    name: str
    expires_ms: int


class TokenChecks:
    """Checks the tokens of one listener's clients.

    Attributes:
        ask_again: Has the keys of a web server read again, soon (key_refresh.py).
    """

    __slots__ = (
        "_clock",
        "_ending",
        "_jwt",
        "_keys",
        "_reading",
        "_seen",
        "_settings",
        "ask_again",
    )

    def __init__(self, settings: OAuthSettings, clock: Clock) -> None:
        """Begin without keys: the first token, or `load`, has them read."""
        self.ask_again: Callable[[], None] | None = None
        self._settings = settings
        self._clock = clock
        self._ending = Ending()
        self._jwt: Any = None
        # By id; "" is the only one of a set whose keys have none.
        self._keys: Mapping[str, Any] = {}
        # How the file looked before it was read last, and when (monotonic) that was.
        self._seen: tuple[_Look | None, float] = (None, float("-inf"))
        self._reading = threading.Lock()

    @property
    def has_keys(self) -> bool:
        """Whether tokens that are signed can be checked."""
        return bool(self._keys)

    @property
    def must_read(self) -> bool:
        """Whether the next token has a file of keys read: that is for a thread."""
        path = self._settings.keys_file
        if path is None:
            return False
        look, read_s = self._seen
        is_old = (self._clock.monotonic() - read_s) * 1000 >= self._settings.refresh_ms
        return is_old or _look_of(path) != look

    def close(self) -> None:
        """Ask no web server any more; whoever does fails at once."""
        self._ending.end()

    def load(self) -> None:
        """Read the keys, if tokens are signed; asks a web server, if that has them.

        Raises:
            ConfigError: They cannot be read, or PyJWT is missing.
        """
        if self._settings.are_signed:
            self._jwt = _library()
            path = self._settings.keys_file
            # As it is before: what is written meanwhile has it read once more.
            seen = None if path is None else _look_of(path), self._clock.monotonic()
            try:
                self._keys = self._read()
            finally:
                # Not sooner: others, who find that it has changed, wait for its keys.
                self._seen = seen

    def owner(self, token: str) -> TokenOwner:
        """Return whom a token names; reads a file of keys first, if `must_read`.

        Raises:
            BadTokenError: It is not believed.
        """
        if len(token) > _LONGEST_BYTES:
            raise BadTokenError(f"a token of {len(token)} bytes")
        if not self._settings.are_signed:
            return self._checked(_unsecured_claims(token))
        if self._settings.keys_url is not None:
            if not self._keys:
                raise BadTokenError("a token that nothing here can check yet")
        elif self.must_read:
            self._load_now()
        return self._checked(self._signed_claims(token))

    # --- what stands in it ---

    def _checked(self, claims: Mapping[str, Any]) -> TokenOwner:
        settings = self._settings
        expires_ms = self._end_of(claims)
        if settings.issuer is not None and claims.get("iss") != settings.issuer:
            raise BadTokenError("a token of another issuer")
        if settings.audiences and not set(settings.audiences) & _words(claims.get("aud")):
            raise BadTokenError("a token for another audience")
        scopes = _words(claims.get(settings.scope_claim), cut=True)
        if not set(settings.required_scopes) <= scopes:
            raise BadTokenError("a token without the scopes asked for", "insufficient_scope")
        subject = claims.get(settings.subject_claim)
        if not isinstance(subject, str) or not subject.strip():
            raise BadTokenError(f"a token without {settings.subject_claim}")
        if any("\ud800" <= each <= "\udfff" for each in subject):  # JSON can have half a character
            raise BadTokenError(f"a token whose {settings.subject_claim} is no text")
        return TokenOwner(subject, expires_ms)

    def _end_of(self, claims: Mapping[str, Any]) -> int:
        """Return when a token ends, whose times hold now and fit each other."""
        now_ms, skew_ms = self._clock.now_ms(), self._settings.skew_ms
        are_signed = self._settings.are_signed
        expires_ms = _milliseconds(claims, "exp")
        issued_ms, begins_ms = _milliseconds(claims, "iat"), _milliseconds(claims, "nbf")
        if expires_ms is None:
            raise BadTokenError("a token without exp")
        if now_ms - skew_ms >= expires_ms:
            raise BadTokenError("a token that has expired")
        if begins_ms is not None and now_ms + skew_ms < begins_ms:
            raise BadTokenError("a token whose nbf is to come")
        if issued_ms is None:
            if are_signed:  # as Kafka's signed ones have it
                raise BadTokenError("a token without iat")
        elif not are_signed and now_ms + skew_ms < issued_ms:
            raise BadTokenError("a token whose iat is to come")
        if expires_ms < max(issued_ms or expires_ms, begins_ms or expires_ms):
            raise BadTokenError("a token that ends before it begins")
        return expires_ms

    # --- who has signed it ---

    def _signed_claims(self, token: str) -> Mapping[str, Any]:
        jwt = self._jwt
        times = {"verify_exp": False, "verify_nbf": False, "verify_iat": False}
        others = {"verify_aud": False, "verify_iss": False, "verify_sub": False}
        try:
            key = self._key(str(jwt.get_unverified_header(token).get("kid", "")))
            claims = jwt.decode(
                token, key, algorithms=_ALGORITHMS, options={**times, **others, "verify_jti": False}
            )
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise BadTokenError(f"a token that cannot be checked: {error}") from None
        found: Mapping[str, Any] = claims
        return found

    def _key(self, key_id: str) -> Any:
        key = self._keys.get(key_id)
        if key is None:
            if self.ask_again is not None:
                self.ask_again()
            raise BadTokenError("a token signed by no key that is known")
        return key

    def _load_now(self) -> None:
        """Read the keys; those that there are stay if it fails."""
        with self._reading:
            try:
                if self.must_read:  # nobody else has, meanwhile
                    self.load()
            except ConfigError as error:
                logger.warning("tokens go by the keys that were read before, if any: %s", error)
        if self._jwt is None:
            raise BadTokenError("a token that nothing here can check")

    def _read(self) -> Mapping[str, Any]:
        """Return the keys of the file, or of the server.

        Raises:
            ConfigError: It has none.
        """
        settings = self._settings
        path = settings.keys_file or settings.keys_url
        try:
            if settings.keys_file is not None:
                with settings.keys_file.open("rb") as file:
                    text = file.read(_LONGEST_FILE_BYTES)
            else:
                text = _asked(settings, self._ending)
            found = self._usable(json.loads(text)["keys"], str(path))
        except (OSError, ValueError, TypeError, KeyError, RecursionError, WebError) as error:
            raise ConfigError(f"{path} has no JSON Web Keys: {error}") from None
        if not found:
            raise ConfigError(f"{path} has no public key that tokens could be signed by")
        return found

    def _usable(self, rows: Any, path: str) -> Mapping[str, Any]:
        """Return the keys of a set that tokens could be signed by; others take none with them."""
        found: dict[str, Any] = {}
        for number, row in enumerate(rows):
            key = self._key_of(row)
            key_id = "" if key is None or key.key_id is None else key.key_id
            if key is not None and isinstance(key_id, str) and key.algorithm_name in _ALGORITHMS:
                found[key_id] = key
            else:  # what is wrong with it is not said: that would be the key
                logger.info("key %d of %s is none that tokens could be signed by", number, path)
        return found

    def _key_of(self, row: object) -> Any:
        """Return a JSON Web Key; None if it is none."""
        wrong = (TypeError, ValueError, AttributeError, NotImplementedError, RecursionError)
        try:
            return self._jwt.PyJWK(row)
        except (*wrong, self._jwt.PyJWTError):
            return None


def _look_of(path: Path) -> _Look | None:
    """Return what is another when a file is; None: nobody can look at it."""
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino


def _asked(settings: OAuthSettings, ending: Ending) -> bytes:
    assert settings.keys_url is not None, "tokens are signed"
    context = None
    if settings.keys_tls is not None:
        from wirebroker.security.tls_contexts import client_context  # noqa: PLC0415 - if asked for

        context = client_context(settings.keys_tls)
    address = WebAddress(settings.keys_url, context, _ANSWER_S, _ANSWER_S)
    return ask(address, headers={}, ending=ending)


def _library() -> Any:
    try:
        importlib.import_module("cryptography")
        return importlib.import_module("jwt")
    except ImportError:
        raise ConfigError(
            "OAUTHBEARER with signed tokens needs PyJWT: pip install 'wirebroker[oauth]'"
        ) from None


def _unsecured_claims(token: str) -> Mapping[str, Any]:
    parts = token.split(".")
    if len(parts) != 3 or parts[2]:
        raise BadTokenError("a token that is none, or is signed, where nobody signs")
    try:
        header, claims = (json.loads(_decoded(part)) for part in parts[:2])
    except (ValueError, RecursionError):
        raise BadTokenError("a token that is none") from None
    if not isinstance(header, dict) or not isinstance(claims, dict):
        raise BadTokenError("a token that is none")
    if cast("dict[str, Any]", header).get("alg") != "none":
        raise BadTokenError("a token that is not of an unsecured kind")
    return cast("dict[str, Any]", claims)


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error:
        raise BadTokenError("a token that is not base64") from None


def _milliseconds(claims: Mapping[str, Any], name: str) -> int | None:
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e12:
        raise BadTokenError(f"a token whose {name} is no time")
    return int(value * 1000)


def _words(value: Any, *, cut: bool = False) -> set[str]:
    """Return the texts of a claim that may be one, or a list."""
    if isinstance(value, str):
        return set(value.split()) if cut else {value}
    if isinstance(value, list):
        items = cast("list[object]", value)
        return {each for each in items if isinstance(each, str)}
    return set()
