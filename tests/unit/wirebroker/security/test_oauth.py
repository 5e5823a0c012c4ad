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
from wirebroker.security.sasl.sasl_doors import SaslDoors
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


def claims(**others: Any) -> dict[str, Any]:
    seconds = int(now())
    return {"sub": "alice", "iat": seconds, "exp": seconds + 300, **others}


def unsecured(**others: Any) -> str:
    parts = (json.dumps(each).encode() for each in ({"alg": "none"}, claims(**others)))
    return ".".join(base64.urlsafe_b64encode(each).decode().rstrip("=") for each in parts) + "."


def first(token: str, authorization_id: str = "") -> bytes:
    told = f"a={authorization_id}" if authorization_id else ""
    return f"n,{told},\x01auth=Bearer {token}\x01traceId=1\x01\x01".encode()


def keys_in(path: Path, **keys: Any) -> Path:
    rows = []
    for key_id, key in keys.items():
        kind = jwt.algorithms.RSAAlgorithm if key is RSA else jwt.algorithms.ECAlgorithm
        row = kind.to_jwk(key.public_key(), as_dict=True)
        rows.append({**row, "kid": key_id, "alg": "RS256" if key is RSA else "ES256"})
    path.write_text(json.dumps({"keys": rows}))
    return path


def signed(key: Any, key_id: str, **others: Any) -> str:
    algorithm = "RS256" if key is RSA else "ES256"
    return jwt.encode(claims(**others), key, algorithm, headers={"kid": key_id})


async def test_a_token_lets_its_owner_in_until_it_ends(tmp_path: Path) -> None:
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
async def test_a_token_that_is_refused_is_answered_and_then_the_client_has_failed(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await shake_hands(client, "OAUTHBEARER")
        told = await send_token(client, first(unsecured(**changes)))
        assert (told.error_code, told.auth_bytes) == (0, b'{"status":"invalid_token"}')
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
async def test_what_is_no_message_of_it_fails_at_once(
    tmp_path: Path, message: bytes | None
) -> None:
    if message is None:
        message = first(unsecured(), "bob")  # generated by the client: it is valid for some minutes
    async with running(tmp_path, settings=OPEN) as server, client_of(server) as client:
        await shake_hands(client, "OAUTHBEARER")
        assert (await send_token(client, message)).error_code == FAILED


def test_who_one_wants_to_be_may_have_commas_and_equals_signs() -> None:
    checks = TokenChecks(OAuthSettings(), SystemClock())
    way = OAuthMechanism(checks)
    assert way.step(first(unsecured(sub="a,b=c"), "a=2Cb=3Dc")) == b""
    assert way.user == "a,b=c"
    for other in ("a,b", "a=2", "=2c", "a=", "\0", "é"):
        with pytest.raises(NotProvedError, match="not the message"):
            OAuthMechanism(checks).step(first(unsecured(), other))


def test_a_connection_that_is_older_than_the_settings_can_still_log_in(tmp_path: Path) -> None:
    nobody: Any = None
    doors = SaslDoors(nobody, nobody, "cluster", SystemClock())
    (listener,) = listeners_of(config_of(tmp_path, settings=OPEN))
    doors.use_listeners([listener])
    doors.use_listeners([])
    assert listener.sasl is not None
    assert isinstance(doors.mechanism("OAUTHBEARER", listener.sasl), OAuthMechanism)


async def test_a_signed_token_lets_in_and_an_unsigned_one_does_not(tmp_path: Path) -> None:
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
    found = TokenChecks(OAuthSettings(keys_file=path, **settings), SystemClock())
    found.load()
    return found


def test_each_key_of_the_file_counts_and_no_other(tmp_path: Path) -> None:
    found = checks(keys_in(tmp_path / "keys.json", one=RSA, two=ELLIPTIC))
    for key, key_id in ((RSA, "one"), (ELLIPTIC, "two")):
        assert found.owner(signed(key, key_id)).name == "alice"
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
            found.owner(token)


def test_a_token_may_be_as_long_as_a_request_before_a_login(tmp_path: Path) -> None:
    found = checks(keys_in(tmp_path / "keys.json", one=ELLIPTIC))
    long = signed(ELLIPTIC, "one", groups="g" * 100_000)
    assert OAuthMechanism(found).step(first(long)) == b""
    bounded = checks(keys_in(tmp_path / "keys.json", one=ELLIPTIC), most_bytes=100_000)
    with pytest.raises(BadTokenError, match="a token of 1"):
        bounded.owner(long)
    many = b"n,,\x01auth=Bearer " + long.encode() + b"\x01" + b"a=b\x01" * 1_000 + b"\x01"
    with pytest.raises(NotProvedError, match="too many pairs"):
        OAuthMechanism(found).step(many)
    crowded = signed(ELLIPTIC, "one", groups=["g"] * 20_000)
    with pytest.raises(BadTokenError, match="too many values"):
        found.owner(crowded)


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
def test_a_key_that_is_none_takes_no_other_with_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, others: dict[str, Any]
) -> None:
    """As with jose4j, which Kafka uses. The bad key is not logged: it may be a secret."""
    path = keys_in(tmp_path / "keys.json", one=ELLIPTIC, two=STRANGER)
    one, two = json.loads(path.read_text())["keys"]
    caplog.set_level(logging.INFO)
    for rows in ([{**two, **others}, one], [one, {**two, **others}, 7, None, [], "key"]):
        path.write_text(json.dumps({"keys": rows}))
        assert checks(path).owner(signed(ELLIPTIC, "one")).name == "alice"
    assert f"key 0 in {path} is not a usable signing key; ignored" in caplog.messages
    path.write_text(json.dumps({"keys": [{**two, **others}]}))
    with pytest.raises(ConfigError, match="no public key"):
        checks(path)


@pytest.mark.parametrize("text", ["7", "null", "[]", "{}", '{"keys": 7}', '{"keys": null}', "["])
def test_what_is_no_set_of_keys_is_said(tmp_path: Path, text: str) -> None:
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
def test_what_has_to_stand_in_a_token(
    tmp_path: Path, settings: dict[str, Any], good: dict[str, Any], bad: dict[str, Any]
) -> None:
    def token(others: dict[str, Any]) -> str:
        start = now()
        times: dict[str, Any] = {
            name: start + others[name]
            for name in ("exp", "nbf", "iat")
            if others.get(name) is not None
        }
        return signed(ELLIPTIC, "one", **{**others, **times})

    found = checks(keys_in(tmp_path / "keys.json", one=ELLIPTIC), **settings)
    assert found.owner(token(good)).name == "alice"
    with pytest.raises(BadTokenError):
        found.owner(token(bad))


class HandClock(SystemClock):
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds


def test_keys_that_change_are_read_again_but_not_for_each_token(tmp_path: Path) -> None:
    path, clock = keys_in(tmp_path / "keys.json", one=ELLIPTIC), HandClock()
    found = TokenChecks(OAuthSettings(keys_file=path, refresh_ms=60_000), clock)
    found.load()
    assert not found.must_read
    keys_in(path, two=RSA)
    assert found.must_read
    assert found.owner(signed(RSA, "two")).name == "alice", "a new key counts at once"
    assert not found.must_read
    with pytest.raises(BadTokenError):
        found.owner(signed(ELLIPTIC, "three"))
    assert not found.must_read, "whatever keys tokens name"
    for change in (lambda: path.write_text("nonsense"), path.unlink):
        change()
        assert found.must_read
        assert found.owner(signed(RSA, "two")).name == "alice", "what was read stays"
        assert not found.must_read, "it is not read for each token"
    clock.seconds = 60
    assert found.must_read, "whether or not it looks the same"


def test_nobody_is_checked_by_old_keys_while_new_ones_are_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = keys_in(tmp_path / "keys.json", one=ELLIPTIC)
    found = TokenChecks(OAuthSettings(keys_file=path), SystemClock())
    found.load()
    keys_in(path, two=RSA)
    has_others_wait: list[bool] = []
    read = TokenChecks._read

    def read_slowly(self: TokenChecks) -> Any:
        has_others_wait.append(self.must_read)
        return read(self)

    monkeypatch.setattr(TokenChecks, "_read", read_slowly)
    assert found.owner(signed(RSA, "two")).name == "alice"
    assert has_others_wait == [True]
    assert not found.must_read


async def test_keys_that_have_changed_are_read_beside_the_loop_and_once(
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
            for each in clients:
                await shake_hands(each, "OAUTHBEARER")
            messages = [send_token(each, first(signed(ELLIPTIC, "two"))) for each in clients]
            answers = await asyncio.gather(*messages)
    assert [each.auth_bytes for each in answers] == [b""] * 5
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
def test_what_cannot_be_served_is_refused(settings: dict[str, str], said: str) -> None:
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
def test_tokens_of_any_audience_or_issuer_are_accepted_only_if_that_is_asked_for(
    tmp_path: Path, settings: dict[str, str], missing: str
) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    told = {**sasl_listener("OAUTHBEARER"), URL: keys.as_uri(), **settings}
    switch = rf"sasl\.oauthbearer\.allow\.unverified\.{missing}=true"
    with pytest.raises(ConfigError, match=rf"expected\.{missing} is missing.*{switch}"):
        listeners_of(Config({"log.dirs": "data", **told}))


def test_an_audience_is_compared_unless_any_is_allowed() -> None:
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


async def test_a_file_without_keys_is_said_at_the_start(tmp_path: Path) -> None:
    keys = tmp_path / "keys.json"
    keys.write_text('{"keys": []}')
    settings = {**OPEN, URL: keys.as_uri()}
    with pytest.raises(ConfigError, match=r"keys\.json has no"):
        await Server(config_of(tmp_path / "data", settings=settings)).start()
    assert not (tmp_path / "data").exists()
