"""Settings of a listener with OAUTHBEARER: trusted keys and required claims.

    sasl.oauthbearer.jwks.endpoint.url=file:///etc/wirebroker/jwks.json      keys of the signatures
    sasl.oauthbearer.expected.issuer, .expected.audience, .clock.skew.seconds, .sub.claim.name

The URL of a web server must be in org.apache.kafka.sasl.oauthbearer.allowed.urls.

Without keys, only the JAAS line applies, as in Kafka: tokens are unsigned, clients may claim any
user, and a warning at the start says so.

    …OAuthBearerLoginModule required unsecuredValidatorRequiredScope="kafka";

Source: Kafka's OAuthBearerValidatorCallbackHandler and its unsecured variant.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote, urlsplit

from wirebroker.config.java.java_options import ALLOWED_URLS
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.client_tls import client_tls

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.config.security.tls import TlsSettings
    from wirebroker.config.values import Config

_KEYS: Final = "sasl.oauthbearer.jwks.endpoint.url"
_LOOPBACK: Final = frozenset({"127.0.0.1", "::1", "localhost"})
_HANDLER: Final = "sasl.server.callback.handler.class"
_VALIDATOR: Final = (
    "org.apache.kafka.common.security.oauthbearer.OAuthBearerValidatorCallbackHandler"
)
_MOST_BYTES: Final = "sasl.server.max.receive.size"
_UNSECURED: Final = "unsecuredValidator"


@dataclass(slots=True, frozen=True, kw_only=True)
class OAuthSettings:
    """Required properties of tokens.

    Attributes:
        keys_file: JSON Web Keys (RFC 7517), one of which signed the token.
        keys_url: Web server with the keys; with neither, tokens are unsigned.
        issuer: None for any.
        takes_any_audience: Whether any is accepted if `audiences` is empty.
        most_bytes: Of a token.
    """

    keys_file: Path | None = None
    keys_url: str | None = None
    keys_tls: TlsSettings | None = None
    refresh_ms: int = 3_600_000
    retry_ms: int = 100
    most_retry_ms: int = 10_000
    issuer: str | None = None
    audiences: tuple[str, ...] = ()
    takes_any_audience: bool = False
    skew_ms: int = 0
    subject_claim: str = "sub"
    scope_claim: str = "scope"
    required_scopes: tuple[str, ...] = ()
    most_bytes: int = 524_288

    @property
    def are_signed(self) -> bool:
        """Whether tokens must be signed."""
        return self.keys_file is not None or self.keys_url is not None


def oauth_settings(config: Config, listener: str, options: Mapping[str, str]) -> OAuthSettings:
    """Return a listener's OAUTHBEARER settings; `options` are those of its JAAS line.

    Raises:
        ConfigError: They are invalid.
    """
    handler = config.listener_value(listener, _HANDLER, mechanism="OAUTHBEARER")
    if handler and handler != _VALIDATOR:
        raise ConfigError(f"{_HANDLER}={handler} cannot be used: only {_VALIDATOR} is supported")
    url = config.listener_value(listener, _KEYS)
    if not url:
        if handler:
            raise ConfigError(f"{_KEYS} is missing: set it to the keys that sign tokens")
        return _unsecured(options, config.int(_MOST_BYTES))
    is_file = urlsplit(str(url)).scheme == "file"
    if not is_file:
        check_web_address(_KEYS, str(url), config.list(ALLOWED_URLS))
    by_tls = urlsplit(str(url)).scheme == "https"
    issuer = _text(config, listener, "sasl.oauthbearer.expected.issuer")
    audiences = _texts(config, listener, "sasl.oauthbearer.expected.audience")
    if not audiences:
        _check_allowed(config, listener, "audience", "sasl.oauthbearer.allow.unverified.audience")
    if issuer is None:
        _check_allowed(config, listener, "issuer", "sasl.oauthbearer.allow.unverified.issuer")
    return OAuthSettings(
        keys_file=_file_of(str(url)) if is_file else None,
        keys_url=None if is_file else str(url),
        keys_tls=client_tls(options) if by_tls else None,
        refresh_ms=_number(config, listener, "sasl.oauthbearer.jwks.endpoint.refresh.ms"),
        retry_ms=_number(config, listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.ms"),
        most_retry_ms=_number(
            config, listener, "sasl.oauthbearer.jwks.endpoint.retry.backoff.max.ms"
        ),
        issuer=issuer,
        audiences=audiences,
        takes_any_audience=not audiences,
        skew_ms=1000 * _number(config, listener, "sasl.oauthbearer.clock.skew.seconds"),
        subject_claim=_text(config, listener, "sasl.oauthbearer.sub.claim.name") or "sub",
        scope_claim=_text(config, listener, "sasl.oauthbearer.scope.claim.name") or "scope",
        most_bytes=config.int(_MOST_BYTES),
    )


def _check_allowed(config: Config, listener: str, claim: str, switch: str) -> None:
    if not config.listener_value(listener, switch):
        raise ConfigError(
            f"sasl.oauthbearer.expected.{claim} is missing: without it, tokens of any {claim} "
            f"would be accepted; set it, or {switch}=true"
        )


def check_web_address(name: str, url: str, allowed: tuple[str, ...] | None) -> None:
    """Check the URL in a setting; `allowed` is None if any may be used.

    Raises:
        ConfigError: It is invalid.
    """
    try:
        parts = urlsplit(url)
        host = parts.hostname
        port_is_good = parts.port is None or parts.port > 0
    except ValueError:
        host, port_is_good = None, False
        parts = urlsplit("")
    if parts.scheme not in {"http", "https"} or not host or not port_is_good or parts.username:
        raise ConfigError(f"{name}={url} cannot be used: write https://host/path or file:///path")
    if parts.scheme == "http" and host not in _LOOPBACK:
        raise ConfigError(
            f"{name}={url} cannot be used: plain http can be manipulated on the way; use https "
            "(http is allowed only to this machine)"
        )
    if allowed is not None and url not in allowed:
        raise ConfigError(f"{name}={url} cannot be used: add it to {ALLOWED_URLS}")


def _unsecured(options: Mapping[str, str], most_bytes: int) -> OAuthSettings:
    skew = options.get(f"{_UNSECURED}AllowableClockSkewMs", "0").strip() or "0"
    if not (skew.isascii() and skew.isdigit()):
        raise ConfigError(
            f"{_UNSECURED}AllowableClockSkewMs={skew} cannot be used: it must be milliseconds"
        )
    return OAuthSettings(
        skew_ms=int(skew),
        subject_claim=options.get(f"{_UNSECURED}PrincipalClaimName", "").strip() or "sub",
        scope_claim=options.get(f"{_UNSECURED}ScopeClaimName", "").strip() or "scope",
        required_scopes=tuple(options.get(f"{_UNSECURED}RequiredScope", "").split()),
        most_bytes=most_bytes,
    )


def _file_of(url: str) -> Path:
    parts = urlsplit(url)
    if parts.netloc not in {"", "localhost"}:
        raise ConfigError(f"{_KEYS}={url} cannot be used: write file:///path of a local file")
    path = Path(unquote(parts.path))
    if not path.is_file():
        raise ConfigError(f"{_KEYS}={url} cannot be used: the file does not exist")
    return path


def _number(config: Config, listener: str, name: str) -> int:
    value = config.listener_value(listener, name)
    assert isinstance(value, int)
    return value


def _text(config: Config, listener: str, name: str) -> str | None:
    value = config.listener_value(listener, name)
    return str(value) if value else None


def _texts(config: Config, listener: str, name: str) -> tuple[str, ...]:
    value = config.listener_value(listener, name)
    return value if isinstance(value, tuple) else ()
