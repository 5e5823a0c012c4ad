"""Source of the tokens for outgoing logins by OAUTHBEARER.

    sasl.oauthbearer.token.endpoint.url=file:///run/token            a file, read at each login
    sasl.oauthbearer.token.endpoint.url=https://identity/token       an identity provider (RFC 6749)
    … required unsecuredLoginStringClaim_sub="broker";               unsigned, for tests

The JAAS line can contain clientId, clientSecret and scope, `ssl.…` for the provider, and
`extension_NAME` for the remote listener.

Source: Kafka's OAuthBearerLoginCallbackHandler, DefaultJwtRetriever,
OAuthBearerUnsecuredLoginCallbackHandler.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote, urlsplit

from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.client_tls import client_tls
from wirebroker.config.security.oauth import check_web_address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.security.tls import TlsSettings

URL: Final = "sasl.oauthbearer.token.endpoint.url"
HANDLER: Final = "sasl.login.callback.handler.class"
RETRIEVER: Final = "sasl.oauthbearer.jwt.retriever.class"
_CLIENT_ID: Final = "sasl.oauthbearer.client.credentials.client.id"
_CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105
_SCOPE: Final = "sasl.oauthbearer.scope"
_KAFKAS: Final = "org.apache.kafka.common.security.oauthbearer."
_CLASSES: Final = {
    HANDLER: (f"{_KAFKAS}OAuthBearerLoginCallbackHandler",),
    RETRIEVER: tuple(
        f"{_KAFKAS}{each}JwtRetriever" for each in ("Default", "File", "ClientCredentials")
    ),
}
# Not compiled: most brokers have no tokens.
_CLAIM: Final = r"unsecuredLogin(String|Number|List)Claim_(.+)"
_EXTENSION: Final = r"[A-Za-z]+"
_EXTENSION_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_UNSECURED_LIFETIME_S: Final = 3600


@dataclass(slots=True, frozen=True, kw_only=True)
class OAuthLogin:
    """Source of tokens: a file, an identity provider, or unsigned claims.

    Attributes:
        scope: None for the provider's default.
        retry_ms: First delay of retries; it doubles.
        most_retry_ms: Time limit for all retries.
        claims: Claims of an unsigned token, as JSON.
        extensions: SASL extensions sent with the token.
    """

    token_file: Path | None = None
    token_url: str | None = None
    tls: TlsSettings | None = None
    client_id: str = ""
    client_secret: str = field(default="", repr=False)
    scope: str | None = None
    connect_s: float = 10.0
    answer_s: float = 10.0
    retry_ms: int = 100
    most_retry_ms: int = 10_000
    claims: str = ""
    lifetime_s: float = _UNSECURED_LIFETIME_S
    extensions: tuple[tuple[str, str], ...] = ()


def oauth_login(
    options: Mapping[str, str],
    setting: Callable[[str], ConfigValue],
    name: str,
    *,
    allowed: tuple[str, ...] | None,
) -> OAuthLogin:
    """Return the source of tokens.

    `options` are those of the JAAS line, which the setting `name` contains. `setting` returns None
    for an unset one. `allowed` are URLs that may be used; None for any.

    Raises:
        ConfigError: The text contains no secret.
    """
    for setting_name, classes in _CLASSES.items():
        value = setting(setting_name)
        if value and value not in classes:
            raise ConfigError(
                f"{setting_name}={value} cannot be used: only {', '.join(classes)} can"
            )
    url = str(setting(URL) or "")
    extensions = _extensions(options, name)
    if not url:
        if setting(HANDLER):
            raise ConfigError(f"{URL} is missing: set it to the source of tokens")
        return _unsecured(options, name, extensions)
    if urlsplit(url).scheme == "file":
        return OAuthLogin(token_file=Path(unquote(urlsplit(url).path)), extensions=extensions)
    check_web_address(URL, url, allowed)
    client_id = str(setting(_CLIENT_ID) or options.get("clientId", ""))
    if not client_id:
        raise ConfigError(f"{_CLIENT_ID} is missing: {url} requires it")
    return OAuthLogin(
        token_url=url,
        tls=client_tls(options) if urlsplit(url).scheme == "https" else None,
        client_id=client_id,
        client_secret=str(setting(_CLIENT_SECRET) or options.get("clientSecret", "")),
        scope=str(setting(_SCOPE) or options.get("scope", "")) or None,
        connect_s=_number(setting, "sasl.login.connect.timeout.ms", 10_000) / 1000,
        answer_s=_number(setting, "sasl.login.read.timeout.ms", 10_000) / 1000,
        retry_ms=_number(setting, "sasl.login.retry.backoff.ms", 100),
        most_retry_ms=_number(setting, "sasl.login.retry.backoff.max.ms", 10_000),
        extensions=extensions,
    )


def _number(setting: Callable[[str], ConfigValue], name: str, default: int) -> int:
    value = setting(name)
    if value is None or value == "":
        return default
    text = str(value)
    if not (text.isascii() and text.isdigit() and 0 < int(text) < 1 << 31):
        raise ConfigError(f"{name}={text[:32]} cannot be used: it must be milliseconds")
    return int(text)


def _extensions(options: Mapping[str, str], name: str) -> tuple[tuple[str, str], ...]:
    extensions = {
        option.removeprefix("extension_"): value
        for option, value in options.items()
        if option.startswith("extension_")
    }
    for key, value in extensions.items():
        is_text = re.fullmatch(_EXTENSION, key) and re.fullmatch(_EXTENSION_VALUE, value)
        is_valid = is_text and key != "auth"
        if not is_valid:
            raise ConfigError(
                f"{name} cannot be used: extension_{key} is not a valid extension of OAUTHBEARER"
            )
    return tuple(extensions.items())


def _unsecured(
    options: Mapping[str, str], name: str, extensions: tuple[tuple[str, str], ...]
) -> OAuthLogin:
    claims: dict[str, Any] = {}
    for option, value in options.items():
        match = re.fullmatch(_CLAIM, option)
        if match is None:
            continue
        try:
            claims[match[2]] = _claim(match[1], value)
        except ValueError:
            raise ConfigError(f"{name} cannot be used: {option} is not a number") from None
    subject = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if not isinstance(claims.get(subject), str):
        raise ConfigError(
            f"{name} cannot be used: unsecuredLoginStringClaim_{subject} is missing; set it to "
            f"the user, or set {URL}"
        )
    lifetime = options.get("unsecuredLoginLifetimeSeconds", str(_UNSECURED_LIFETIME_S))
    if not (lifetime.isascii() and lifetime.isdigit() and 0 < int(lifetime) < 1 << 31):
        raise ConfigError(f"{name} cannot be used: unsecuredLoginLifetimeSeconds is not a number")
    return OAuthLogin(claims=json.dumps(claims), lifetime_s=float(lifetime), extensions=extensions)


def _claim(kind: str, text: str) -> str | float | list[str]:
    if kind == "Number":
        return float(text)
    if kind == "String":
        return text
    # The first character is the separator.
    return text[1:].split(text[0]) if text else []
