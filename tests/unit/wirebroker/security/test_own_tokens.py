"""OAUTHBEARER logins of the broker: token sources and failures."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import running
from tests.support.http.web_server import web_server
from tests.support.security.sasl_clients import sasl_listener
from tests.unit.wirebroker.base.test_threads import blocked
from tests.unit.wirebroker.security.test_oauth import (
    OPEN,
    RSA,
    URL,
    keys_in,
    now,
    signed,
    unsecured,
)
from wirebroker.base.clock import SystemClock, pause
from wirebroker.base.threads import Work, until_idle
from wirebroker.client.security.security import client_security
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import between_brokers
from wirebroker.config.security.oauth_login import OAuthLogin
from wirebroker.net.client.connection import PeerConnection
from wirebroker.net.client.errors import AuthenticationFailedError
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.security.login.outgoing import ConnectionMethod, connection_method
from wirebroker.security.tokens.own_tokens import ClientTokens, NoTokenError

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.broker.server import Server

MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
ENDPOINT = "sasl.oauthbearer.token.endpoint.url"
HANDLER = "sasl.login.callback.handler.class"
KAFKAS = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginCallbackHandler"


def way(options: str = "", **settings: str) -> ConnectionMethod:
    return connection_method(
        client_security(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "OAUTHBEARER",
                "sasl.jaas.config": f"{MODULE} required {options};",
                **settings,
            }
        )
    )


async def log_in(server: Server, security: ConnectionMethod) -> None:
    connection = await PeerConnection.open(
        PeerAddress(*server.address),
        dialer=security.dialer,
        settings=ClientSettings(client_id="us"),
        clock=SystemClock(),
        handshake=security.handshake,
    )
    assert (await connection.request(ApiKey.METADATA, {"topics": []})).brokers
    await connection.close()


async def test_unsigned_token_has_the_claims_of_the_jaas_line(tmp_path: Path) -> None:
    line = (
        'unsecuredLoginStringClaim_sub="us" unsecuredLoginListClaim_scope=",a,kafka" '
        'unsecuredLoginNumberClaim_level="3" extension_traceId="1"'
    )
    jaas = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"
    strict = {jaas: f'{MODULE} required unsecuredValidatorRequiredScope="kafka";'}
    async with running(tmp_path, settings={**OPEN, **strict}) as server:
        await log_in(server, way(line))
        with pytest.raises(AuthenticationFailedError, match="insufficient_scope"):
            await log_in(server, way('unsecuredLoginStringClaim_sub="us"'))


async def test_token_file_is_read_at_each_login(tmp_path: Path) -> None:
    file = tmp_path / "token"
    security = way(**{ENDPOINT: file.as_uri(), HANDLER: KAFKAS})
    keys = keys_in(tmp_path / "keys.json", one=RSA)
    async with running(tmp_path / "data", settings={**OPEN, URL: keys.as_uri()}) as server:
        with pytest.raises(AuthenticationFailedError, match="cannot be read"):
            await log_in(server, security)
        file.write_text(signed(RSA, "one") + "\n")
        await log_in(server, security)
        file.write_text(unsecured())
        with pytest.raises(AuthenticationFailedError, match="invalid_token"):
            await log_in(server, security)
        for nothing in ("", "two words", "\u00fc", "x" * 70_000):
            file.write_text(nothing)
            with pytest.raises(
                AuthenticationFailedError, match=r"does not contain a token|longer than"
            ):
                await log_in(server, security)


async def test_token_of_a_server_is_reused_for_four_fifths_of_its_lifetime(tmp_path: Path) -> None:
    with web_server() as web:
        security = way(
            'clientId="us" clientSecret="our-secret" scope="a b"', **{ENDPOINT: web.url("/token")}
        )
        async with running(tmp_path, settings=OPEN) as server:
            web.body = json.dumps({"access_token": unsecured(exp=now() + 100)}).encode()
            for _ in range(3):
                await log_in(server, security)
            (request,) = web.asked
            assert (request.method, request.path) == ("POST", "/token")
            assert request.body == b"grant_type=client_credentials&scope=a+b"
            proof = base64.b64decode(request.headers["Authorization"].removeprefix("Basic "))
            assert proof == b"us:our-secret"


async def test_expiring_token_is_requested_again(tmp_path: Path) -> None:
    with web_server() as web:
        named = {
            f"sasl.oauthbearer.client.credentials.client.{name}": "x" for name in ("id", "secret")
        }
        security = way(**{ENDPOINT: web.url("/token"), **named})
        async with running(tmp_path, settings=OPEN) as server:
            for expires_s, count in ((-1, 1), (100, 2), (100, 2)):
                web.body = json.dumps({"id_token": unsecured(exp=now() + expires_s)}).encode()
                if expires_s < 0:
                    with pytest.raises(AuthenticationFailedError, match="invalid_token"):
                        await log_in(server, security)
                else:
                    await log_in(server, security)
                assert len(web.asked) == count


@pytest.mark.parametrize(
    ("status", "body", "said"),
    [
        (401, b"{}", "returned 401"),
        (503, b"{}", "returned 503"),
        (200, b"{}", "has no token"),
        (200, b"[]", "has no token"),
        (200, b"nonsense", "is not JSON"),
        (200, b'{"access_token": "a b"}', "does not contain a token"),
    ],
)
async def test_token_server_error_is_reported(
    tmp_path: Path, status: int, body: bytes, said: str
) -> None:
    with web_server() as web:
        web.status, web.body = status, body
        # In total: a busy machine takes a while for the first response.
        brief = {"sasl.login.retry.backoff.ms": "1", "sasl.login.retry.backoff.max.ms": "1000"}
        security = way('clientId="us" clientSecret="our-secret"', **{ENDPOINT: web.url(), **brief})
        async with running(tmp_path, settings=OPEN) as server:
            with pytest.raises(AuthenticationFailedError, match=said) as refused:
                await log_in(server, security)
            assert "our-secret" not in str(refused.value)
        assert (len(web.asked) > 1) is (status == 503)


@pytest.mark.parametrize(
    ("options", "settings", "said"),
    [
        ("", {}, "unsecuredLoginStringClaim_sub is missing"),
        ("unsecuredLoginNumberClaim_sub=x", {}, "is not a number"),
        (
            'unsecuredLoginStringClaim_sub=a unsecuredLoginLifetimeSeconds="-1"',
            {},
            "LifetimeSeconds",
        ),
        (
            "unsecuredLoginStringClaim_sub=a extension_auth=b",
            {},
            "extension_auth is not a valid extension",
        ),
        ("", {HANDLER: KAFKAS}, "set it to the source of tokens"),
        ("", {HANDLER: "com.example.Mine"}, "com.example.Mine cannot be used"),
        ("", {"sasl.oauthbearer.jwt.retriever.class": "x.Y"}, "x.Y cannot be used"),
        ("", {ENDPOINT: "https://example.org/token"}, "client.id is missing"),
        ("clientId=a", {ENDPOINT: "http://example.org/token"}, "use https"),
        (
            "clientId=a",
            {ENDPOINT: "https://example.org/token", "sasl.login.read.timeout.ms": "x"},
            "milliseconds",
        ),
    ],
)
def test_unusable_token_settings_are_refused(
    options: str, settings: dict[str, str], said: str
) -> None:
    with pytest.raises(ConfigError, match=said):
        way(options, **settings)


def test_broker_requests_only_allowed_token_urls() -> None:
    configs: dict[str, Any] = {
        **sasl_listener("OAUTHBEARER"),
        "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config": (
            f"{MODULE} required clientId=us clientSecret=x;"
        ),
        ENDPOINT: "https://identity.example.org/token",
        HANDLER: KAFKAS,
    }
    with pytest.raises(ConfigError, match=r"add it to .*allowed\.urls"):
        between_brokers(Config(configs))
    allowed = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": configs[ENDPOINT]}
    login = between_brokers(Config({**configs, **allowed})).login
    assert login is not None
    assert login.oauth is not None
    assert login.oauth.token_url == configs[ENDPOINT]
    assert "clientSecret" not in repr(login)


@pytest.mark.parametrize("end", ["NaN", "Infinity", "1e999", "1" + "0" * 400])
async def test_token_with_an_invalid_expiry_is_used_once(end: str) -> None:
    claims = base64.urlsafe_b64encode(f'{{"exp": {end}}}'.encode()).decode()
    with web_server() as web:
        web.body = json.dumps({"access_token": f"e30.{claims}.x"}).encode()
        tokens = ClientTokens(OAuthLogin(token_url=web.url(), client_id="us"), SystemClock())
        assert await tokens.token() == await tokens.token()
        assert len(web.asked) == 2


async def test_token_with_a_lone_surrogate_is_refused() -> None:
    with web_server() as web:
        web.body = b'{"access_token": "a.\\ud800.b"}'
        with pytest.raises(NoTokenError, match="does not contain a token"):
            await ClientTokens(
                OAuthLogin(token_url=web.url(), client_id="us"), SystemClock()
            ).token()


async def test_slow_token_server_delays_no_other_token(tmp_path: Path) -> None:
    """Neither requests to another server nor key fetches, which use other threads."""
    with web_server() as slow, web_server() as quick:
        slow.dribble = True
        quick.body = json.dumps({"access_token": unsecured(exp=now() + 100)}).encode()
        late = ClientTokens(
            OAuthLogin(token_url=slow.url(), client_id="us", most_retry_ms=0), SystemClock()
        )
        tasks = [asyncio.create_task(late.token()) for _ in range(Work.OUR_TOKENS.most_threads + 1)]
        cancelled, *waiting = tasks
        while not slow.asked:
            await pause(0.005)
        other = ClientTokens(OAuthLogin(token_url=quick.url(), client_id="us"), SystemClock())
        assert await other.token()
        assert not any(task.done() for task in tasks)
        cancelled.cancel()
        slow.ended.set()  # the server closes
        assert [
            type(outcome) for outcome in await asyncio.gather(*waiting, return_exceptions=True)
        ] == [NoTokenError] * len(waiting)
        assert len(slow.asked) == 1


@pytest.mark.parametrize("status", [200, 503])
async def test_stop_does_not_wait_for_a_token_server(status: int) -> None:
    with web_server() as slow:
        slow.dribble, slow.status = status == 200, status
        login = OAuthLogin(
            token_url=slow.url(),
            client_id="us",
            answer_s=60.0,
            retry_ms=60_000,
            most_retry_ms=120_000,
        )
        task = asyncio.create_task(ClientTokens(login, SystemClock()).token())
        while not slow.asked:
            await pause(0.005)
        task.cancel()
        await asyncio.wait([task])
        async with asyncio.timeout(20):
            await until_idle()
        assert len(slow.asked) == 1


async def test_own_logins_and_key_requests_use_separate_threads(tmp_path: Path) -> None:
    with web_server() as web:
        web.body = keys_in(tmp_path / "keys.json", one=RSA).read_bytes()
        allowed = {"org.apache.kafka.sasl.oauthbearer.allowed.urls": web.url()}
        often = {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "20"}
        settings = {**OPEN, URL: web.url(), **allowed, **often}
        async with (
            running(tmp_path / "data", settings=settings),
            blocked(Work.OUR_LOGINS),
            blocked(Work.OUR_TOKENS),
            blocked(Work.LOGINS),
        ):
            count = len(web.asked)
            while len(web.asked) < count + 2:
                await pause(0.005)
            assert web.status == 200
