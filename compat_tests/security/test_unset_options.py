"""Compare the meaning of unset security options in both brokers by a table.

Each row is a listener with as few settings as possible. A row names intentional differences of
wirebroker, which docs/compatibility.md explains.
"""

from __future__ import annotations

import asyncio
import ssl
import warnings
from typing import TYPE_CHECKING, Any, ClassVar, Final, NamedTuple

import pytest

from compat_tests.security.listeners import KafkaOfListeners, WirebrokerOfListeners, protocol_map
from compat_tests.security.tokens_by_hand import claims, keys, now, signed, unsigned
from tests.support.brokers import java_start
from tests.support.brokers.brokers import BrokerError
from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import log_in_plain, log_in_scram, send_token, shake_hands
from tests.support.security.tls_files import (
    authority,
    certificate,
    client_certificate,
    client_side,
    write,
)
from tests.support.tools.ports import HOST
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator
    from pathlib import Path

    Guarded = KafkaOfListeners | WirebrokerOfListeners
    Probe = Callable[["Place"], Awaitable[object]]

_PACKAGE: Final = "org.apache.kafka.common.security."
OAUTH: Final = f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule required"
PLAIN: Final = f"{_PACKAGE}plain.PlainLoginModule required"
SCRAM: Final = f"{_PACKAGE}scram.ScramLoginModule required;"
VALIDATOR: Final = f"{_PACKAGE}oauthbearer.OAuthBearerValidatorCallbackHandler"
HANDLER: Final = "oauthbearer.sasl.server.callback.handler.class"
URL: Final = "sasl.oauthbearer.jwks.endpoint.url"
AUDIENCE: Final = "sasl.oauthbearer.expected.audience"
ANY_AUDIENCE: Final = {"sasl.oauthbearer.allow.unverified.audience": "true"}
ANY_ISSUER: Final = {"sasl.oauthbearer.allow.unverified.issuer": "true"}
ISSUER: Final = "sasl.oauthbearer.expected.issuer"
MECHANISMS: Final = "sasl.enabled.mechanisms"
KEY: Final = "ssl.keystore.location"
TRUST: Final = "ssl.truststore.location"
KEYS_FILE: Final = "the file of keys"
TRUSTED: Final = {"ssl.truststore.type": "PEM", TRUST: "the authority"}
INVALID: Final = (0, b'{"status":"invalid_token"}')
BELIEVED: Final = (0, b"")


class Place(NamedTuple):
    """Address and credentials of a probe."""

    port: int
    folder: Path


class ByKind(NamedTuple):
    wirebroker: object
    apache: object


class Row(NamedTuple):
    """A listener and its probes.

    Attributes:
        protocol: Its security protocol.
        settings: Its settings, without `listener.name.<listener>.`.
        probes: Each probe and its expected result.
    """

    protocol: str
    settings: dict[str, str]
    probes: dict[str, tuple[Probe, object]]


# --- probes ---


def by_tls(
    own_certificate: str | None = None, version: ssl.TLSVersion = ssl.TLSVersion.TLSv1_2
) -> Callable[[Place], Awaitable[object]]:
    """Connect with one version of TLS; return the owner of a delegation token, or "refused"."""

    async def probe(listener: Place) -> object:
        context = client_side(listener.folder, own_certificate)
        with warnings.catch_warnings():  # old versions are deprecated
            warnings.simplefilter("ignore", DeprecationWarning)
            context.minimum_version = context.maximum_version = version
        context.set_ciphers("ALL:@SECLEVEL=0")
        try:
            streams = await asyncio.open_connection(HOST, listener.port, ssl=context)
        except OSError:
            return "refused"
        return await _asked(RawClient(*streams))

    return probe


async def _asked(client: RawClient) -> object:
    body: dict[str, Any] = {
        "owner_principal_type": None,
        "owner_principal_name": None,
        "renewers": [],
        "max_lifetime_ms": -1,
    }
    try:
        answer = await client.ask(ApiKey.CREATE_DELEGATION_TOKEN, 3, body)
    except (EOFError, OSError):
        return "refused"
    finally:
        await client.close()
    if answer.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED:
        return "ANONYMOUS"
    return answer.principal_name


def by_password(user: str, password: str, mechanism: str = "PLAIN") -> Probe:
    """Log in; return (error, session lifetime)."""

    async def probe(listener: Place) -> object:
        client = await RawClient.connect((HOST, listener.port))
        try:
            if mechanism == "PLAIN":
                answer = await log_in_plain(client, user, password)
            else:
                answer = await log_in_scram(client, mechanism, user, password)
        finally:
            await client.close()
        return ErrorCode(answer.error_code).name, answer.session_lifetime_ms

    return probe


async def create_a_topic(listener: Place) -> object:
    client = await RawClient.connect((HOST, listener.port))
    try:
        await log_in_plain(client, "alice", "alice-secret")
        topic = {"name": "of-alice", "num_partitions": 1, "replication_factor": 1}
        body = {"topics": [topic], "timeout_ms": 10_000}
        (created,) = (await client.ask(ApiKey.CREATE_TOPICS, 7, body)).topics
    finally:
        await client.close()
    return ErrorCode(created.error_code).name


def by_token(token: Callable[[], str]) -> Probe:
    """Log in with a token; return (error, message)."""

    async def probe(listener: Place) -> object:
        answer = await _token_answer(listener, token())
        return answer.error_code, answer.auth_bytes

    return probe


def ends_with_its_token(token: Callable[[], str]) -> Probe:
    """Log in with a token of 300 s; return whether the session ends with it."""

    async def probe(listener: Place) -> object:
        return 200_000 < (await _token_answer(listener, token())).session_lifetime_ms <= 300_000

    return probe


async def _token_answer(listener: Place, token: str) -> Any:
    client = await RawClient.connect((HOST, listener.port))
    try:
        await shake_hands(client, "OAUTHBEARER")
        return await send_token(client, f"n,,\x01auth=Bearer {token}\x01\x01".encode())
    finally:
        await client.close()


# --- the table ---


def tokens(**settings: str) -> dict[str, str]:
    """Return the settings of a listener for signed tokens, and others by their full names."""
    return {
        MECHANISMS: "OAUTHBEARER",
        "oauthbearer.sasl.jaas.config": f"{OAUTH};",
        HANDLER: VALIDATOR,
        URL: KEYS_FILE,
        **settings,
    }


REFUSED_PLAIN: Final = ("SASL_AUTHENTICATION_FAILED", 0)
ROWS: Final[dict[str, Row]] = {
    "TLS": Row(
        "SSL",
        {},
        {
            "no certificate is requested": (by_tls(client_certificate()), "ANONYMOUS"),
            "TLS 1.3": (by_tls(version=ssl.TLSVersion.TLSv1_3), "ANONYMOUS"),
            "TLS 1.1": (by_tls(version=ssl.TLSVersion.TLSv1_1), "refused"),
        },
    ),
    "NOTRUST": Row(
        "SSL",
        {"ssl.client.auth": "required"},
        {
            "untrusted certificate": (by_tls(client_certificate()), "refused"),
            "without a certificate": (by_tls(), "refused"),
        },
    ),
    "NAMES": Row(
        "SSL",
        {"ssl.client.auth": "required", **TRUSTED},
        {"the whole name is the user's": (by_tls(client_certificate()), "CN=alice")},
    ),
    "ASKED": Row(
        "SSL",
        {"ssl.client.auth": "requested", **TRUSTED},
        {
            "without a certificate": (by_tls(), "ANONYMOUS"),
            "a stranger's": (by_tls(client_certificate("eve", by="another authority")), "refused"),
        },
    ),
    "NOUSERS": Row(
        "SASL_PLAINTEXT",
        {MECHANISMS: "PLAIN", "plain.sasl.jaas.config": f"{PLAIN};"},
        {
            "no user exists": (by_password("alice", "alice-secret"), REFUSED_PLAIN),
            "without a password": (by_password("alice", ""), REFUSED_PLAIN),
        },
    ),
    "USERS": Row(
        "SASL_PLAINTEXT",
        {
            MECHANISMS: "PLAIN",
            "plain.sasl.jaas.config": f'{PLAIN} user_alice="alice-secret" user_bob="";',
        },
        {
            "logins do not end": (by_password("alice", "alice-secret"), ("NONE", 0)),
            "an empty password is refused": (by_password("bob", ""), REFUSED_PLAIN),
            "a user without rules may do nothing": (create_a_topic, "TOPIC_AUTHORIZATION_FAILED"),
        },
    ),
    "SCRAM": Row(
        "SASL_PLAINTEXT",
        {MECHANISMS: "SCRAM-SHA-512", "scram-sha-512.sasl.jaas.config": SCRAM},
        {
            "there are no users": (
                by_password("alice", "alice-secret", "SCRAM-SHA-512"),
                REFUSED_PLAIN,
            )
        },
    ),
    "TOKENS": Row(
        "SASL_PLAINTEXT",
        tokens(**ANY_AUDIENCE, **ANY_ISSUER),
        {
            "of any audience": (by_token(lambda: signed(aud="zzz")), BELIEVED),
            "of several": (by_token(lambda: signed(aud=["zzz", "kafka"])), BELIEVED),
            "of none": (by_token(lambda: signed(aud=None)), BELIEVED),
            "of any issuer": (by_token(lambda: signed(aud=None, iss="https://x")), BELIEVED),
            "of no issuer": (by_token(lambda: signed(aud=None, iss=None)), BELIEVED),
            "ended 10 s ago": (
                by_token(lambda: signed(aud=None, iat=now() - 60, exp=now() - 10)),
                BELIEVED,
            ),
            "ended a minute ago": (
                by_token(lambda: signed(aud=None, iat=now() - 90, exp=now() - 60)),
                INVALID,
            ),
            "without a scope": (by_token(lambda: signed(aud=None, scope=None)), BELIEVED),
            "of a user in another claim": (
                by_token(lambda: signed(aud=None, sub=None, name="alice")),
                INVALID,
            ),
            "ends with its token": (ends_with_its_token(lambda: signed(aud=None)), True),
            "not signed": (by_token(lambda: unsigned(aud=None)), INVALID),
        },
    ),
    "AUDIENCE": Row(
        "SASL_PLAINTEXT",
        tokens(**{AUDIENCE: "kafka"}, **ANY_ISSUER),
        {
            "of any issuer": (by_token(lambda: signed(iss="https://x")), BELIEVED),
            "of no issuer": (by_token(lambda: signed(iss=None)), BELIEVED),
            "of no audience": (by_token(lambda: signed(aud=None)), INVALID),
        },
    ),
    "ISSUER": Row(
        "SASL_PLAINTEXT",
        tokens(**{ISSUER: str(claims()["iss"])}, **ANY_AUDIENCE),
        {
            "of any audience": (by_token(lambda: signed(aud="zzz")), BELIEVED),
            "of no audience": (by_token(lambda: signed(aud=None)), BELIEVED),
            "of another issuer": (by_token(lambda: signed(aud=None, iss="https://x")), INVALID),
        },
    ),
    # With keys configured, wirebroker accepts only signed tokens, whatever the Java validator
    # class.
    "KEYSONLY": Row(
        "SASL_PLAINTEXT",
        {
            name: value
            for name, value in tokens(**ANY_AUDIENCE, **ANY_ISSUER).items()
            if name != HANDLER
        },
        {
            "signed": (
                by_token(lambda: signed(aud=None)),
                ByKind(wirebroker=BELIEVED, apache=INVALID),
            ),
            "not signed": (by_token(unsigned), ByKind(wirebroker=INVALID, apache=BELIEVED)),
        },
    ),
    "UNSIGNED": Row(
        "SASL_PLAINTEXT",
        {
            MECHANISMS: "OAUTHBEARER",
            "oauthbearer.sasl.jaas.config": f"{OAUTH};",
        },
        {
            "of any audience and scope": (by_token(lambda: unsigned(aud="zzz")), BELIEVED),
            "just ended": (by_token(lambda: unsigned(exp=now() - 5, iat=now() - 60)), INVALID),
            "without a user": (by_token(lambda: unsigned(sub=None)), INVALID),
            "signed": (by_token(signed), INVALID),
        },
    ),
}
PROBES: Final = [(name, probe) for name, row in ROWS.items() for probe in row.probes]


PROTOCOLS: Final = {name: row.protocol for name, row in ROWS.items()}


class KafkaOfRows(KafkaOfListeners):
    protocols: ClassVar = PROTOCOLS


class WirebrokerOfRows(WirebrokerOfListeners):
    protocols: ClassVar = PROTOCOLS


def settings_of(folder: Path) -> dict[str, str]:
    files = {
        KEYS_FILE: f"file://{write(folder, 'keys.json', keys().decode())}",
        TRUSTED[TRUST]: write(folder, "authority.pem", authority().certificate),
    }
    return {
        "listener.security.protocol.map": protocol_map(PROTOCOLS),
        "ssl.keystore.type": "PEM",
        KEY: write(folder, "broker.pem", certificate()),
        "delegation.token.secret.key": "of-the-cluster",
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "super.users": "User:ANONYMOUS",  # the broker's own user at its controller
        ALLOWED: files[KEYS_FILE],
        **{
            f"listener.name.{name.lower()}.{option}": files.get(value, value)
            for name, row in ROWS.items()
            for option, value in row.settings.items()
        },
    }


ALLOWED: Final = "org.apache.kafka.sasl.oauthbearer.allowed.urls"


@pytest.fixture(
    scope="module",
    params=["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])],
)
def broker(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Guarded, Path]]:
    folder = tmp_path_factory.mktemp("unset")
    settings = settings_of(folder)
    running: Guarded
    if request.param == "apache":
        options = (*java_start.options(), f"-D{ALLOWED}={settings.pop(ALLOWED)}")
        running = KafkaOfRows(folder / "broker", settings, java_options=options)
    else:
        running = WirebrokerOfRows(folder / "broker", settings)
    with running:
        yield running, folder


@pytest.mark.parametrize(("name", "what"), PROBES, ids=[" ".join(names) for names in PROBES])
def test_default_of_unset_option(broker: tuple[Guarded, Path], name: str, what: str) -> None:
    running, folder = broker
    probe, expected = ROWS[name].probes[what]
    if isinstance(expected, ByKind):
        is_ours = isinstance(running, WirebrokerOfRows)
        expected = expected.wirebroker if is_ours else expected.apache
    assert asyncio.run(_probed(probe, Place(running.ports[name], folder))) == expected


async def _probed(probe: Probe, listener: Place) -> object:
    async with asyncio.timeout(30):
        return await probe(listener)


# --- what does not start ---

EXTRA: Final = "listener.name.extra."
KEYSTORE: Final = {"ssl.keystore.type": "PEM", KEY: "the keystore"}
BOTH: Final = {"wirebroker", "apache"}


class Start(NamedTuple):
    """A broker with one more listener, EXTRA.

    Attributes:
        protocol: The listener's.
        settings: The broker's.
        refused_by: The brokers that do not start with these settings.
    """

    protocol: str
    settings: dict[str, str]
    refused_by: set[str] = BOTH


STARTS: Final[dict[str, Start]] = {
    # Apache Kafka starts and refuses all clients.
    "TLS without a keystore": Start("SSL", {}, {"wirebroker"}),
    "a PEM keystore without its type": Start("SSL", {KEY: "the keystore"}),
    "a PEM truststore without its type": Start(
        "SSL", {**KEYSTORE, "ssl.client.auth": "required", TRUST: "the authority"}
    ),
    "PLAIN without users' line": Start("SASL_PLAINTEXT", {f"{EXTRA}{MECHANISMS}": "PLAIN"}),
    "OAUTHBEARER without a line": Start("SASL_PLAINTEXT", {f"{EXTRA}{MECHANISMS}": "OAUTHBEARER"}),
    "no mechanism named, PLAIN told": Start(
        "SASL_PLAINTEXT", {f"{EXTRA}plain.sasl.jaas.config": f'{PLAIN} user_a="b";'}
    ),
    "signed tokens without keys": Start(
        "SASL_PLAINTEXT",
        {
            f"{EXTRA}{MECHANISMS}": "OAUTHBEARER",
            f"{EXTRA}oauthbearer.sasl.jaas.config": f"{OAUTH};",
            f"{EXTRA}{HANDLER}": VALIDATOR,
        },
    ),
    "signed tokens of any audience": Start(
        "SASL_PLAINTEXT", {f"{EXTRA}{name}": value for name, value in tokens(**ANY_ISSUER).items()}
    ),
    "signed tokens of any issuer": Start(
        "SASL_PLAINTEXT",
        {f"{EXTRA}{name}": value for name, value in tokens(**ANY_AUDIENCE).items()},
    ),
    # SCRAM users are in the metadata: a JAAS line would have no effect.
    "SCRAM without a line": Start(
        "SASL_PLAINTEXT", {f"{EXTRA}{MECHANISMS}": "SCRAM-SHA-512"}, {"apache"}
    ),
    # Apache Kafka starts and permits everything.
    "super users without an authorizer": Start(
        "SSL", {**KEYSTORE, "super.users": "User:admin"}, {"wirebroker"}
    ),
}


@pytest.mark.parametrize(
    "kind", ["wirebroker", pytest.param("apache", marks=[pytest.mark.java, pytest.mark.nightly])]
)
@pytest.mark.parametrize("name", STARTS)
def test_start_succeeds_or_fails_as_in_row(tmp_path: Path, kind: str, name: str) -> None:
    start = STARTS[name]
    files = {
        "the keystore": write(tmp_path, "broker.pem", certificate()),
        "the authority": write(tmp_path, "authority.pem", authority().certificate),
        KEYS_FILE: f"file://{write(tmp_path, 'keys.json', keys().decode())}",
    }
    settings = {option: files.get(value, value) for option, value in start.settings.items()}
    protocols = {"EXTRA": start.protocol}
    settings["listener.security.protocol.map"] = protocol_map(protocols)
    folder = tmp_path / "broker"
    starting: Guarded
    if kind == "apache":
        kafka = type("Kafka", (KafkaOfListeners,), {"protocols": protocols})
        starting = kafka(folder, settings, java_options=java_start.options())
    else:
        starting = type("Own", (WirebrokerOfListeners,), {"protocols": protocols})(folder, settings)
    if kind in start.refused_by:
        with pytest.raises(BrokerError, match="ended with status"):
            starting.start()
    else:
        with starting:
            assert starting.process_id
