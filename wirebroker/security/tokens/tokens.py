"""Validation of bearer tokens (JWT, RFC 7519): signature, issuer, audience, times.

    signed      by a key from a file or a web server: RS, PS, ES and EdDSA; never a shared secret,
                never `none`
    unsecured   without a signature (RFC 7515, appendix A.5): for tests

A changed file of keys is read with the next token. Reading 1 MiB takes 25 ms, so it needs a thread
(`must_read`). Times are compared here, with the broker's clock. The only import of PyJWT.

Source: Kafka's BrokerJwtValidator, OAuthBearerUnsecuredJws, OAuthBearerValidationUtils.
"""

from __future__ import annotations

import base64
import binascii
import importlib
import logging
import threading
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, cast

from wirebroker.codecs.json_text import parse_json
from wirebroker.config import ConfigError
from wirebroker.config.sources.regular_file import read_regular
from wirebroker.security.tokens.key_set import ALGORITHMS, PublicKey, select, usable_keys
from wirebroker.security.tokens.strict_json import strict_object
from wirebroker.security.tokens.web import Ending, WebAddress, WebError, ask

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from wirebroker.base.clock import Clock
    from wirebroker.config.security.oauth import OAuthSettings

logger = logging.getLogger("wirebroker.security")

# Modification time, size and inode.
_Fingerprint: TypeAlias = tuple[int, int, int]
# As Java's String.trim.
_BLANKS: Final = "".join(map(chr, range(0x21)))
_NESTED: Final = frozenset({"jwt", "application/jwt"})
# RFC 7515, section 4.1.11.
_UNDERSTOOD: Final = frozenset({"b64"})
# Kafka's session lifetimes are in nanoseconds; one that overflows has expired.
_LONGEST_LIFE_MS: Final = ((1 << 63) - 1) // 1_000_000
# Timeout of a key server for connecting, and again for the response.
_ANSWER_S: Final = 10.0
_LONGEST_FILE_BYTES: Final = 1 << 20


class BadTokenError(Exception):
    """A refused token; the text is for the log, the status for the client."""

    def __init__(self, reason: str, status: str = "invalid_token") -> None:
        super().__init__(reason)
        self.status = status


class TokenOwner(NamedTuple):
    """A token's user and expiry (wall time)."""

    name: str
    expires_ms: int


class TokenChecks:
    """Validates the tokens of one listener's clients.

    `request_refresh` requests the keys of a web server again, soon (key_refresh.py).
    """

    __slots__ = (
        "_clock",
        "_ending",
        "_file_state",
        "_jwt",
        "_keys",
        "_reading",
        "_settings",
        "request_refresh",
    )

    def __init__(self, settings: OAuthSettings, clock: Clock) -> None:
        self.request_refresh: Callable[[], None] | None = None
        self._settings = settings
        self._clock = clock
        self._ending = Ending()
        self._jwt: Any = None
        self._keys: tuple[PublicKey, ...] = ()
        # The fingerprint before the last read, and the read's monotonic time.
        self._file_state: tuple[_Fingerprint | None, float] = (None, float("-inf"))
        self._reading = threading.Lock()

    @property
    def has_keys(self) -> bool:
        """Whether signed tokens can be verified."""
        return bool(self._keys)

    @property
    def must_read(self) -> bool:
        """Whether the next token reads a file of keys, and so needs a thread."""
        path = self._settings.keys_file
        if path is None:
            return False
        fingerprint, read_s = self._file_state
        is_old = (self._clock.monotonic() - read_s) * 1000 >= self._settings.refresh_ms
        return is_old or _fingerprint(path) != fingerprint

    def close(self) -> None:
        """Fail all requests to a web server, now and later."""
        self._ending.end()

    def load(self) -> None:
        """Read the keys, if tokens are signed.

        Raises:
            ConfigError: They cannot be read, or PyJWT is missing.
        """
        if self._settings.are_signed:
            self._jwt = _library()
            path = self._settings.keys_file
            # Before reading, so that later writes are noticed.
            file_state = None if path is None else _fingerprint(path), self._clock.monotonic()
            try:
                self._keys = self._read()
            finally:
                # Not before: other threads that find a change wait for its keys.
                self._file_state = file_state

    def owner(self, token: str) -> TokenOwner:
        """Return a token's owner; if `must_read`, first reads keys.

        Raises:
            BadTokenError: The token is refused.
        """
        if len(token) > self._settings.most_bytes:
            raise BadTokenError(f"the token is too long: {len(token)} bytes")
        if not self._settings.are_signed:
            return self._checked(_unsecured_claims(token))
        if self._settings.keys_url is not None:
            if not self._keys:
                raise BadTokenError("the signing keys have not been read yet")
        elif self.must_read:
            self._load_now()
        return self._checked(self._signed_claims(token))

    def _checked(self, claims: Mapping[str, Any]) -> TokenOwner:
        settings = self._settings
        expires_ms = self._end_of(claims)
        if settings.are_signed:
            self._check_addressees(claims)
        scopes = _scopes(claims.get(settings.scope_claim), is_strict=settings.are_signed)
        if not set(settings.required_scopes) <= scopes:
            raise BadTokenError("the token lacks a required scope", "insufficient_scope")
        subject = claims.get(settings.subject_claim)
        name = subject.strip(_BLANKS) if isinstance(subject, str) else ""
        if not name:
            raise BadTokenError(f"the token has no {settings.subject_claim}")
        # JSON can contain lone surrogates.
        if any("\ud800" <= character <= "\udfff" for character in name):
            raise BadTokenError(f"the token's {settings.subject_claim} is not valid text")
        return TokenOwner(name, expires_ms)

    def _check_addressees(self, claims: Mapping[str, Any]) -> None:
        """Check the issuer and the audience of a signed token.

        If no audience is configured, tokens with one are refused by default: identity providers
        issue tokens for many services.
        """
        settings, issuer, audience = self._settings, claims.get("iss"), claims.get("aud")
        if not isinstance(issuer, str | None) or not isinstance(claims.get("jti"), str | None):
            raise BadTokenError("the token's iss or jti is not a string")
        if settings.issuer is not None and issuer != settings.issuer:
            raise BadTokenError("the token is from another issuer")
        if not settings.audiences and (audience is None or settings.takes_any_audience):
            return
        audiences = [audience] if isinstance(audience, str) else audience
        if not isinstance(audiences, list) or not all(
            isinstance(item, str | None) for item in cast("list[object]", audiences)
        ):
            raise BadTokenError("the token's aud is neither a string nor a list of strings")
        if not set(settings.audiences) & set(cast("list[str]", audiences)):
            hint = "" if settings.audiences else " (sasl.oauthbearer.expected.audience is not set)"
            raise BadTokenError(f"the token is for another audience{hint}")

    def _end_of(self, claims: Mapping[str, Any]) -> int:
        now_ms, skew_ms = self._clock.now_ms(), self._settings.skew_ms
        are_signed = self._settings.are_signed
        expires_ms = _milliseconds(claims, "exp", cut=are_signed)
        issued_ms = _milliseconds(claims, "iat", cut=are_signed)
        begins_ms = _milliseconds(claims, "nbf", cut=are_signed)
        if expires_ms is None:
            raise BadTokenError("the token has no exp")
        if now_ms - skew_ms >= expires_ms:
            raise BadTokenError("the token has expired")
        if expires_ms - now_ms > _LONGEST_LIFE_MS:
            raise BadTokenError("the token is valid for more than 292 years")
        if begins_ms is not None and now_ms + skew_ms < begins_ms:
            raise BadTokenError("the token's nbf is in the future")
        if issued_ms is None:
            if are_signed:  # as in Kafka
                raise BadTokenError("the token has no iat")
        elif not are_signed and now_ms + skew_ms < issued_ms:
            raise BadTokenError("the token's iat is in the future")
        elif are_signed and issued_ms < 0:
            raise BadTokenError("the token's iat is negative")
        if expires_ms < max(issued_ms or expires_ms, begins_ms or expires_ms):
            raise BadTokenError("the token ends before it begins")
        return expires_ms

    def _signed_claims(self, token: str) -> Mapping[str, Any]:
        jwt = self._jwt
        parts = token.split(".")
        if len(parts) != 3 or not all(parts):
            raise BadTokenError("the token does not have three parts")
        try:
            algorithm, key_id = _signer(strict_object(_decoded(parts[0])))
            key = self._key(algorithm, key_id)
            payload = jwt.PyJWS().decode(token, key, algorithms=[algorithm])
            return strict_object(payload)
        except (jwt.PyJWTError, ValueError, RecursionError) as error:
            raise BadTokenError(f"the token cannot be verified: {error}") from None

    def _key(self, algorithm: str, key_id: str | None) -> Any:
        public_key = select(self._keys, algorithm, key_id)
        if public_key is None:
            if self.request_refresh is not None:
                self.request_refresh()
            raise BadTokenError("the token is signed by an unknown key")
        if not public_key.is_long_enough:
            raise BadTokenError("the token is signed by an RSA key of fewer than 2048 bits")
        return public_key.key

    def _load_now(self) -> None:
        with self._reading:
            try:
                if self.must_read:  # unless another thread has just read them
                    self.load()
            except ConfigError as error:
                logger.warning(
                    "cannot read the token signing keys; keeping the previous ones, if any: %s",
                    error,
                )
        if self._jwt is None:
            raise BadTokenError("no signing keys are available")

    def _read(self) -> tuple[PublicKey, ...]:
        settings = self._settings
        path = settings.keys_file or settings.keys_url
        try:
            if settings.keys_file is not None:
                text = read_regular(settings.keys_file, _LONGEST_FILE_BYTES)
            else:
                text = _fetched(settings, self._ending)
            keys = usable_keys(parse_json(text)["keys"], str(path), self._jwt)
        except (OSError, ValueError, TypeError, KeyError, WebError) as error:
            raise ConfigError(f"{path} has no JSON Web Keys: {error}") from None
        if not keys:
            raise ConfigError(f"{path} has no usable public key")
        return keys


def _fingerprint(path: Path) -> _Fingerprint | None:
    try:
        status = path.stat()
    except (OSError, ValueError):  # ValueError: a NUL in its name
        return None
    return status.st_mtime_ns, status.st_size, status.st_ino


def _fetched(settings: OAuthSettings, ending: Ending) -> bytes:
    assert settings.keys_url is not None, "tokens are signed"
    context = None
    if settings.keys_tls is not None:
        from wirebroker.security.tls.tls_contexts import client_context  # noqa: PLC0415 - if asked for

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
        raise BadTokenError("the token is malformed, or it is signed")
    try:
        header, claims = (strict_object(_decoded(part)) for part in parts[:2])
    except ValueError:
        raise BadTokenError("the token is malformed") from None
    if header.get("alg") != "none":
        raise BadTokenError("the token's algorithm is not none")
    return claims


def _decoded(text: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except (binascii.Error, ValueError):
        raise BadTokenError("the token is not base64") from None


def _signer(header: Mapping[str, Any]) -> tuple[str, str | None]:
    algorithm, key_id, nested = header.get("alg"), header.get("kid"), header.get("cty")
    must_know = header.get("crit", [])
    if not isinstance(algorithm, str) or algorithm not in ALGORITHMS:
        raise BadTokenError("the token's signature algorithm is not supported")
    if not isinstance(key_id, str | None):
        raise BadTokenError("the token's kid is not a string")
    if isinstance(nested, str) and nested.lower() in _NESTED:
        raise BadTokenError("the token contains another token")
    understood = cast("frozenset[object]", _UNDERSTOOD)
    if not isinstance(must_know, list) or not understood.issuperset(
        cast("list[object]", must_know)
    ):
        raise BadTokenError("the token has unknown critical header parameters")
    if header.get("b64", True) is not True:
        raise BadTokenError("the token's payload is not base64")
    return algorithm, key_id


def _milliseconds(claims: Mapping[str, Any], name: str, *, cut: bool) -> int | None:
    """Return a time that is given in seconds; `cut` drops the fraction, as jose4j does."""
    value = claims.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < 1e16:
        raise BadTokenError(f"the token's {name} is not a time")
    return int(value) * 1000 if cut else int(value * 1000)


def _scopes(value: Any, *, is_strict: bool) -> set[str]:
    """Return the scopes of a claim: a string, which is one scope, or a list.

    Kafka refuses signed tokens with blank or duplicate scopes.
    """
    if not isinstance(value, str | list):
        return set()
    texts = cast("list[object]", [value] if isinstance(value, str) else value)
    scopes = [text.strip(_BLANKS) for text in texts if isinstance(text, str)]
    if is_strict and (len(set(scopes) - {""}) != len(texts)):
        raise BadTokenError("the token's scopes are blank, not strings, or repeated")
    return set(scopes) - {""}
