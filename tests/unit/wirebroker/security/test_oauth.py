"""OAUTHBEARER: accepted and refused tokens, and their lifetimes."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import logging
import threading
from typing import TYPE_CHECKING, Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from tests.support.brokers.servers import client_of, config_of, running
from tests.support.security.sasl_clients import sasl_listener, send_token, shake_hands
from wirebroker.base.clock import SystemClock
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.security.oauth import OAuthSettings
from wirebroker.security.sasl.mechanisms import NotProvedError
from wirebroker.security.sasl.oauth_mechanism import OAuthMechanism
from wirebroker.security.sasl.sasl_state import SaslState
from wirebroker.security.tokens.tokens import BadTokenError, TokenChecks

if TYPE_CHECKING:
    from pathlib import Path

ANY_AUDIENCE = {"sasl.oauthbearer.allow.unverified.audience": "true"}
ANY_ISSUER = {"sasl.oauthbearer.allow.unverified.issuer": "true"}
OPEN = {
    **sasl_listener("OAUTHBEARER"),
    **ANY_AUDIENCE,
    **ANY_ISSUER,
    "connection.failed.authentication.delay.ms": "1",
}
FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
RSA = rsa.generate_private_key(public_exponent=65537, key_size=2048)
ELLIPTIC = ec.generate_private_key(ec.SECP256R1())
STRANGER = ec.generate_private_key(ec.SECP256R1())
URL = "sasl.oauthbearer.jwks.endpoint.url"


def now() -> float:
    return SystemClock().now_ms() / 1000


def claims(**changes: Any) -> dict[str, Any]:
    seconds = int(now())
    return {"sub": "alice", "iat": seconds, "exp": seconds + 300, **changes}


def unsecured(**changes: Any) -> str:
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims(**changes)))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."


def first(token: str, authorization_id: str = "") -> bytes:
    identity = f"a={authorization_id}" if authorization_id else ""
    return f"n,{identity},\x01auth=Bearer {token}\x01traceId=1\x01\x01".encode()


def keys_in(path: Path, **keys: Any) -> Path:
    rows = []
    for key_id, key in keys.items():
        kind = jwt.algorithms.RSAAlgorithm if key is RSA else jwt.algorithms.ECAlgorithm
        row = kind.to_jwk(key.public_key(), as_dict=True)
        rows.append({**row, "kid": key_id, "alg": "RS256" if key is RSA else "ES256"})
    path.write_text(json.dumps({"keys": rows}))
    return path


def signed(key: Any, key_id: str, **changes: Any) -> str:
    algorithm = "RS256" if key is RSA else "ES256"
    return jwt.encode(claims(**changes), key, algorithm, headers={"kid": key_id})


async def test_token_authenticates_its_owner_until_it_expires(tmp_path: Path) -> None:
    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await shake_hands(client, "OAUTHBEARER")
        answer = await send_token(client, first(unsecured(exp=now() + 100)))
        assert (answer.error_code, answer.auth_bytes) == (0, b"")
        assert 90_000 < answer.session_lifetime_ms <= 100_000
        assert (await client.ask(ApiKey.METADATA, 12, {"topics": []})).brokers
        async with client_of(server) as other:
            await shake_hands(other, "OAUTHBEARER")
            await send_token(other, first(unsecured(exp=now() + 0.2)))
            await other.ask(ApiKey.METADATA, 12, {"topics": []})
            while True:
                try:
                    await other.ask(ApiKey.METADATA, 12, {"topics": []})
                except (ConnectionError, EOFError):
                    break


@pytest.mark.parametrize(
    "changes",
    [
        {"exp": 1},
        {"exp": None},
        {"sub": ""},
        {"sub": 7},
        {"sub": "half \ud800"},
        {"iat": 9e9},
        {"exp": True},
    ],
)
async def test_refused_token_is_answered_before_the_failure(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await shake_hands(client, "OAUTHBEARER")
        answer = await send_token(client, first(unsecured(**changes)))
        assert (answer.error_code, answer.auth_bytes) == (0, b'{"status":"invalid_token"}')
        end = await send_token(client, b"\x01")
        assert (end.error_code, end.error_message) == (FAILED, '{"status":"invalid_token"}')
        assert await client.is_closed()


@pytest.mark.parametrize(
    "message",
    [
        b"",
        b"n,,\x01\x01",
        b"n,,\x01auth=Basic abc\x01\x01",
        b"y,,\x01auth=Bearer abc\x01\x01",
        pytest.param(
            first(unsecured())[:-1] + b"a=b\x01" * 100_000 + b"\x01", id="a hundred thousand more"
        ),
        b"\xff",
        None,  # another user's name
    ],
)
async def test_invalid_initial_message_fails_immediately(
    tmp_path: Path, message: bytes | None
) -> None:
    if message is None:
        message = first(unsecured(), "bob")  # generated by the client: it is valid for some minutes
    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await shake_hands(client, "OAUTHBEARER")
        assert (await send_token(client, message)).error_code == FAILED


def test_authorization_id_may_contain_commas_and_equals_signs() -> None:
    checks = TokenChecks(OAuthSettings(), SystemClock())
    login = OAuthMechanism(checks)
    assert login.step(first(unsecured(sub="a,b=c"), "a=2Cb=3Dc")) == b""
    assert login.user == "a,b=c"
    for other in ("a,b", "a=2", "=2c", "a=", "\0", "é"):
        with pytest.raises(NotProvedError, match="not an OAUTHBEARER message"):
            OAuthMechanism(checks).step(first(unsecured(), other))


def test_connection_of_a_removed_listener_can_still_log_in(tmp_path: Path) -> None:
    nobody: Any = None
    doors = SaslState(nobody, nobody, "cluster", SystemClock())
    (listener,) = listeners_of(config_of(tmp_path, settings=OPEN))
    doors.use_listeners([listener])
    doors.use_listeners([])
    assert listener.sasl is not None
    assert isinstance(doors.mechanism("OAUTHBEARER", listener.sasl), OAuthMechanism)


async def test_signed_token_is_accepted_and_unsigned_is_refused(tmp_path: Path) -> None:
    keys = keys_in(tmp_path / "keys.json", one=RSA)
    settings = {**OPEN, URL: keys.as_uri()}
    async with running(tmp_path / "data", settings=settings) as server:
        for token, answer in (
            (signed(RSA, "one"), b""),
            (unsecured(), b'{"status":"invalid_token"}'),
        ):
            async with client_of(server) as client:
                await shake_hands(client, "OAUTHBEARER")
                assert (await send_token(client, first(token))).auth_bytes == answer


def checks(path: Path, **settings: Any) -> TokenChecks:
    token_checks = TokenChecks(OAuthSettings(keys_file=path, **settings), SystemClock())
    token_checks.load()
    return token_checks


def test_each_key_of_the_file_is_accepted_and_no_other(tmp_path: Path) -> None:
    token_checks = checks(keys_in(tmp_path / "keys.json", one=RSA, two=ELLIPTIC))
    for key, key_id in ((RSA, "one"), (ELLIPTIC, "two")):
        assert token_checks.owner(signed(key, key_id)).name == "alice"
    public = base64.urlsafe_b64encode(b"secret" * 8).decode()
    shared = jwt.encode(claims(), public, "HS256", headers={"kid": "one"})
    for token in (
        signed(STRANGER, "two"),
        signed(STRANGER, "three"),
        signed(ELLIPTIC, "one"),
        shared,
        unsecured(),
        signed(RSA, "one")[:-4] + "AAAA",
        "x.y.z",
        "a" * 70_000,
    ):
        with pytest.raises(BadTokenError):
            token_checks.owner(token)


def test_token_may_be_as_long_as_a_request_before_authentication(tmp_path: Path) -> None:
    token_checks = checks(keys_in(tmp_path / "keys.json", one=ELLIPTIC))
    long = signed(ELLIPTIC, "one", groups="g" * 100_000)
    assert OAuthMechanism(token_checks).step(first(long)) == b""
    bounded = checks(keys_in(tmp_path / "keys.json", one=ELLIPTIC), most_bytes=100_000)
    with pytest.raises(BadTokenError, match="the token is too long: 1"):
        bounded.owner(long)
    message = b"n,,\x01auth=Bearer " + long.encode() + b"\x01" + b"a=b\x01" * 1_000 + b"\x01"
    with pytest.raises(NotProvedError, match="too many pairs"):
        OAuthMechanism(token_checks).step(message)
    crowded = signed(ELLIPTIC, "one", groups=["g"] * 20_000)
    with pytest.raises(BadTokenError, match="too many values"):
        token_checks.owner(crowded)


@pytest.mark.parametrize(
    "others",
    [
        {"kid": ["two"]},
        {"kid": {"two": 2}},
        {"kid": 2},
        {"alg": ["ES256"]},
        {"alg": {"ES256": 1}},
        {"kty": 5},
        {"kty": "RSA", "n": 5, "e": []},
        {"x": 7},
        {"x": None},
        {"crv": []},
    ],
    ids=str,
)
def test_invalid_key_does_not_affect_other_keys(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, others: dict[str, Any]
) -> None:
    """As with jose4j, which Kafka uses. The bad key is not logged: it may be a secret."""
    path = keys_in(tmp_path / "keys.json", one=ELLIPTIC, two=STRANGER)
    first_key, second_key = json.loads(path.read_text())["keys"]
    caplog.set_level(logging.INFO)
    for rows in (
        [{**second_key, **others}, first_key],
        [first_key, {**second_key, **others}, 7, None, [], "key"],
    ):
        path.write_text(json.dumps({"keys": rows}))
        assert checks(path).owner(signed(ELLIPTIC, "one")).name == "alice"
    assert f"key 0 in {path} is not a usable signing key; ignored" in caplog.messages
    path.write_text(json.dumps({"keys": [{**second_key, **others}]}))
    with pytest.raises(ConfigError, match="no usable public key"):
        checks(path)


@pytest.mark.parametrize("text", ["7", "null", "[]", "{}", '{"keys": 7}', '{"keys": null}', "["])
def test_invalid_key_set_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(ConfigError, match=r"keys\.json has no JSON Web Keys"):
        checks(path)


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({"issuer": "us"}, {"iss": "us"}, {"iss": "them"}),
        ({"audiences": ("kafka",)}, {"aud": ["other", "kafka"]}, {"aud": "other"}),
        ({"audiences": ("kafka",)}, {"aud": "kafka"}, {}),
        ({"required_scopes": ("a", "b")}, {"scope": ["b", "a", "c"]}, {"scope": ["a"]}),
        ({"subject_claim": "mail"}, {"mail": "alice"}, {"mail": None}),
        ({"skew_ms": 30_000}, {"iat": -60, "exp": -20}, {"iat": -60, "exp": -40}),
        ({"skew_ms": 900_000}, {"nbf": 100}, {"nbf": 1000, "exp": 2000}),
        # As in Kafka, the issue time does not matter, but it must exist and precede the expiry.
        ({}, {"iat": 3600, "exp": 7200}, {"iat": None}),
        ({"skew_ms": 30_000}, {"iat": -20, "exp": -20}, {"exp": -20}),
        ({"skew_ms": 30_000}, {"nbf": 10, "exp": 10, "iat": 0}, {"nbf": 20, "exp": 10}),
    ],
)
def test_required_token_claims_are_checked(
    tmp_path: Path, settings: dict[str, Any], good: dict[str, Any], bad: dict[str, Any]
) -> None:
    def token(changes: dict[str, Any]) -> str:
        start = now()
        times: dict[str, Any] = {
            name: start + changes[name]
            for name in ("exp", "nbf", "iat")
            if changes.get(name) is not None
        }
        return signed(ELLIPTIC, "one", **{**changes, **times})

    token_checks = checks(keys_in(tmp_path / "keys.json", one=ELLIPTIC), **settings)
    assert token_checks.owner(token(good)).name == "alice"
    with pytest.raises(BadTokenError):
        token_checks.owner(token(bad))


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def test_changed_keys_are_reloaded_but_not_for_each_token(tmp_path: Path) -> None:
    path, clock = keys_in(tmp_path / "keys.json", one=ELLIPTIC), HandClock()
    token_checks = TokenChecks(OAuthSettings(keys_file=path, refresh_ms=60_000), clock)
    token_checks.load()
    assert not token_checks.must_read
    keys_in(path, two=RSA)
    assert token_checks.must_read
    assert token_checks.owner(signed(RSA, "two")).name == "alice", "a new key counts at once"
    assert not token_checks.must_read
    with pytest.raises(BadTokenError):
        token_checks.owner(signed(ELLIPTIC, "three"))
    assert not token_checks.must_read, "whatever keys tokens name"
    for change in (lambda: path.write_text("nonsense"), path.unlink):
        change()
        assert token_checks.must_read
        assert token_checks.owner(signed(RSA, "two")).name == "alice", "the loaded keys stay"
        assert not token_checks.must_read, "it is not read for each token"
    clock.seconds = 60
    assert token_checks.must_read, "whether or not it looks the same"


def test_tokens_wait_while_changed_keys_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keys_in(tmp_path / "keys.json", one=ELLIPTIC)
    token_checks = TokenChecks(OAuthSettings(keys_file=path), SystemClock())
    token_checks.load()
    keys_in(path, two=RSA)
    has_others_wait: list[bool] = []
    read = TokenChecks._read

    def read_slowly(self: TokenChecks) -> Any:
        has_others_wait.append(self.must_read)
        return read(self)

    monkeypatch.setattr(TokenChecks, "_read", read_slowly)
    assert token_checks.owner(signed(RSA, "two")).name == "alice"
    assert has_others_wait == [True]
    assert not token_checks.must_read


async def test_changed_keys_are_loaded_once_outside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = keys_in(tmp_path / "keys.json", one=RSA)
    settings = {**OPEN, URL: keys.as_uri()}
    readers: list[str] = []
    read = TokenChecks.load

    def load(self: TokenChecks) -> None:
        readers.append(threading.current_thread().name)
        read(self)

    async with running(tmp_path / "data", settings=settings) as server:
        monkeypatch.setattr(TokenChecks, "load", load)
        keys_in(keys, two=ELLIPTIC)
        async with contextlib.AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(client_of(server)) for _ in range(5)]
            for client in clients:
                await shake_hands(client, "OAUTHBEARER")
            messages = [send_token(client, first(signed(ELLIPTIC, "two"))) for client in clients]
            answers = await asyncio.gather(*messages)
    assert [answer.auth_bytes for answer in answers] == [b""] * 5
    assert len(readers) == 1
    assert readers[0].startswith("login")


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        (
            {URL: "https://example.org/keys"},
            "add it to org.apache.kafka.sasl.oauthbearer.allowed.urls",
        ),
        ({URL: "file:///no/such/file"}, "the file does not exist"),
        ({"sasl.server.callback.handler.class": "com.example.Mine"}, "only org.apache.kafka"),
    ],
)
def test_unsupported_oauth_settings_are_refused(settings: dict[str, str], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        listeners_of(Config({"log.dirs": "data", **OPEN, **settings}))


@pytest.mark.parametrize(
    ("settings", "missing"),
    [
        ({}, "audience"),
        (ANY_ISSUER, "audience"),
        (ANY_AUDIENCE, "issuer"),
        ({"sasl.oauthbearer.expected.audience": "kafka"}, "issuer"),
        ({"sasl.oauthbearer.expected.issuer": "https://x"}, "audience"),
    ],
)
def test_any_audience_or_issuer_is_accepted_only_if_configured(
    tmp_path: Path, settings: dict[str, str], missing: str
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    listener_settings = {**sasl_listener("OAUTHBEARER"), URL: keys.as_uri(), **settings}
    switch = rf"sasl\.oauthbearer\.allow\.unverified\.{missing}=true"
    with pytest.raises(ConfigError, match=rf"expected\.{missing} is missing.*{switch}"):
        listeners_of(Config({"log.dirs": "data", **listener_settings}))


def test_audience_is_compared_unless_any_is_allowed() -> None:
    """As Apache Kafka 4.4.0 does in compat_tests/security/test_unset_options.py."""
    for settings, is_believed in (
        (OAuthSettings(audiences=("kafka",)), False),
        (OAuthSettings(takes_any_audience=True), True),
        (OAuthSettings(), False),
    ):
        checks = TokenChecks(settings, SystemClock())
        for audience in ("zzz", ["zzz", "other"]):
            if is_believed:
                checks._check_addressees({"aud": audience})
            else:
                with pytest.raises(BadTokenError, match="another audience"):
                    checks._check_addressees({"aud": audience})


async def test_key_file_without_keys_stops_the_start(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    settings = {**OPEN, URL: keys.as_uri()}
    with pytest.raises(ConfigError, match=r"keys\.json has no"):
        await Server(config_of(tmp_path / "data", settings=settings)).start()
    assert not (tmp_path / "data").exists()
