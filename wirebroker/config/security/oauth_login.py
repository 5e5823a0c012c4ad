"""Where our own tokens come from, when we log in by OAUTHBEARER.

    sasl.oauthbearer.token.endpoint.url=file:///run/token            a file, read at each login
    sasl.oauthbearer.token.endpoint.url=https://identity/token       a server of identities, which
        sasl.oauthbearer.client.credentials.client.id, .client.secret, sasl.oauthbearer.scope
                                                                     asks who we are (RFC 6749, 4.4)
    … required unsecuredLoginStringClaim_sub="broker";               signed by nobody, for tests

Id, secret and scope may stand in the JAAS line as well (clientId, clientSecret, scope), as may
`ssl.…` for the server and `extension_NAME` for whoever is logged in to.

A leaf.  Source: Kafka's OAuthBearerLoginCallbackHandler, DefaultJwtRetriever,
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
_CLIENT_SECRET: Final = "sasl.oauthbearer.client.credentials.client.secret"  # noqa: S105 - a name
_SCOPE: Final = "sasl.oauthbearer.scope"
_KAFKAS: Final = "org.apache.kafka.common.security.oauthbearer."
# Kafka's own classes, which stand for what is built in.
_CLASSES: Final = {
    HANDLER: (f"{_KAFKAS}OAuthBearerLoginCallbackHandler",),
    RETRIEVER: tuple(
        f"{_KAFKAS}{each}JwtRetriever" for each in ("Default", "File", "ClientCredentials")
    ),
}
# Texts: re compiles them at their first use and keeps them; most brokers have no tokens.
_CLAIM: Final = r"unsecuredLogin(String|Number|List)Claim_(.+)"
_EXTENSION: Final = r"[A-Za-z]+"
_EXTENSION_VALUE: Final = r"[\x21-\x7e \t\r\n]+"
_UNSECURED_LIFETIME_S: Final = 3600


@dataclass(slots=True, frozen=True, kw_only=True)
class OAuthLogin:
    """Where tokens come from: a file, a server, or claims that nobody signs.

    Attributes:
        token_file: Has a token.
        token_url: Of a server that gives tokens.
        tls: How that is spoken to by https.
        client_id: Who we are to it.
        client_secret: What proves it.
        scope: What the token shall be good for; None for what the server thinks best.
        connect_s: How long connecting may take.
        answer_s: How long an answer may.
        retry_ms: After how long it is asked again; each time twice as long.
        most_retry_ms: How long it is asked again at all.
        claims: Of a token without signature, as JSON; "" if there is a file or a server.
        lifetime_s: Of such a token.
        extensions: What is told beside the token.
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
    """Return where our tokens come from.

    Args:
        options: Of the JAAS line.
        setting: Returns a setting, None if it is unset.
        name: Of the setting that has the line, for errors.
        allowed: Addresses that may be asked; None for any.

    Raises:
        ConfigError: It cannot be used; no secret is in the text.
    """
    for each, classes in _CLASSES.items():
        value = setting(each)
        if value and value not in classes:
            raise ConfigError(f"{each}={value} cannot be used: only {', '.join(classes)}")
    url = str(setting(URL) or "")
    extensions = _extensions(options, name)
    if not url:
        if setting(HANDLER):
            raise ConfigError(f"{URL} is missing: it says where tokens come from")
        return _unsecured(options, name, extensions)
    if urlsplit(url).scheme == "file":
        return OAuthLogin(token_file=Path(unquote(urlsplit(url).path)), extensions=extensions)
    check_web_address(URL, url, allowed)
    client_id = str(setting(_CLIENT_ID) or options.get("clientId", ""))
    if not client_id:
        raise ConfigError(f"{_CLIENT_ID} is missing: {url} asks who we are")
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
        raise ConfigError(f"{name}={text[:32]} cannot be used: milliseconds")
    return int(text)


def _extensions(options: Mapping[str, str], name: str) -> tuple[tuple[str, str], ...]:
    found = {
        option.removeprefix("extension_"): value
        for option, value in options.items()
        if option.startswith("extension_")
    }
    for key, value in found.items():
        is_text = re.fullmatch(_EXTENSION, key) and re.fullmatch(_EXTENSION_VALUE, value)
        good = is_text and key != "auth"
        if not good:
            raise ConfigError(f"{name} cannot be used: extension_{key} is none of OAUTHBEARER")
    return tuple(found.items())


def _unsecured(
    options: Mapping[str, str], name: str, extensions: tuple[tuple[str, str], ...]
) -> OAuthLogin:
    claims: dict[str, Any] = {}
    for option, value in options.items():
        found = re.fullmatch(_CLAIM, option)
        if found is None:
            continue
        try:
            claims[found[2]] = _claim(found[1], value)
        except ValueError:
            raise ConfigError(f"{name} cannot be used: {option} is no number") from None
    subject = options.get("unsecuredLoginPrincipalClaimName", "sub")
    if not isinstance(claims.get(subject), str):
        raise ConfigError(
            f"{name} cannot be used: unsecuredLoginStringClaim_{subject} is missing, or {URL}: "
            "who we are"
        )
    lifetime = options.get("unsecuredLoginLifetimeSeconds", str(_UNSECURED_LIFETIME_S))
    if not (lifetime.isascii() and lifetime.isdigit() and 0 < int(lifetime) < 1 << 31):
        raise ConfigError(f"{name} cannot be used: unsecuredLoginLifetimeSeconds is no number")
    return OAuthLogin(claims=json.dumps(claims), lifetime_s=float(lifetime), extensions=extensions)


def _claim(kind: str, text: str) -> str | float | list[str]:
    if kind == "Number":
        return float(text)
    if kind == "String":
        return text
    # Its first character is what stands between the items.
    return text[1:].split(text[0]) if text else []
