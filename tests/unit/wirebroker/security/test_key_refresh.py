"""Signing keys from a web server: load, refresh, and outages."""

from __future__ import annotations

import asyncio
import socket
import ssl
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import client_of, config_of, running
from tests.support.http.web_server import web_server
from tests.support.security.sasl_clients import send_token, shake_hands
from tests.support.security.tls_files import OURS, authority, certificate, write
from tests.support.tools.waiting import eventually
from tests.unit.wirebroker.security.test_oauth import (
    ELLIPTIC,
    OPEN,
    RSA,
    URL,
    first,
    keys_in,
    signed,
)
from wirebroker.base.clock import pause
from wirebroker.broker.server import Server
from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.security.client_tls import client_tls
from wirebroker.security.tokens.web import WebAddress, WebError, ask

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.http.web_server import WebServer

ALLOWED = "org.apache.kafka.sasl.oauthbearer.allowed.urls"
BACKOFF = "sasl.oauthbearer.jwks.endpoint.retry.backoff"
JAAS = "listener.name.sasl_plaintext.oauthbearer.sasl.jaas.config"


def keys_of(folder: Path, **keys: Any) -> bytes:
    return keys_in(folder / "made.json", **keys).read_bytes()


def settings_for(web: WebServer, **settings: str) -> dict[str, str]:
    quick = {f"{BACKOFF}.ms": "1", f"{BACKOFF}.max.ms": "4"}
    return {**OPEN, **quick, URL: web.url(), ALLOWED: f"https://other.org,{web.url()}", **settings}


async def is_let_in(server: Server, token: str) -> bool:
    async with client_of(server) as client:
        await shake_hands(client, "OAUTHBEARER")
        answer = await send_token(client, first(token))
        return answer.auth_bytes == b""


async def until_let_in(server: Server, token: str) -> None:
    while not await is_let_in(server, token):
        await pause(0.005)


async def test_new_key_is_loaded_when_a_token_names_it(tmp_path: Path) -> None:
    with web_server() as web:
        web.body = keys_of(tmp_path, one=RSA)
        async with running(tmp_path / "data", settings=settings_for(web)) as server:
            assert await is_let_in(server, signed(RSA, "one"))
            web.body = keys_of(tmp_path, two=ELLIPTIC)
            assert not await is_let_in(server, signed(ELLIPTIC, "two"))
            await until_let_in(server, signed(ELLIPTIC, "two"))
            assert not await is_let_in(server, signed(RSA, "one"))
            assert [request.path for request in web.asked] == ["/keys", "/keys"]


async def test_keys_are_refreshed_and_kept_while_the_server_is_down(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with web_server() as web:
        web.body = keys_of(tmp_path, one=RSA)
        often = {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "20"}
        async with running(tmp_path / "data", settings=settings_for(web, **often)) as server:
            web.status = 503
            count = len(web.asked)
            while len(web.asked) < count + 5:
                await pause(0.005)
            assert "returned 503" in caplog.text
            assert await is_let_in(server, signed(RSA, "one"))
            web.body, web.status = keys_of(tmp_path, two=ELLIPTIC), 200
            await until_let_in(server, signed(ELLIPTIC, "two"))


@pytest.mark.parametrize("by_tls", [False, True])
async def test_stop_does_not_wait_for_a_silent_key_server(tmp_path: Path, *, by_tls: bool) -> None:
    with web_server() as web, socket.create_server(("127.0.0.1", 0)) as silent:
        web.body = keys_of(tmp_path, one=RSA)
        often = {"sasl.oauthbearer.jwks.endpoint.refresh.ms": "20"}
        async with running(tmp_path / "data", settings=settings_for(web, **often)) as server:
            assert server.reception._sasl._doors is not None
            (refresh,) = server.reception._sasl._doors._refreshes.values()
            url = f"https://127.0.0.1:{silent.getsockname()[1]}/keys"
            count = len(web.asked)
            if by_tls:
                tls = client_tls({})
                refresh._checks._settings = replace(
                    refresh._checks._settings, keys_url=url, keys_tls=tls
                )
                peer, _ = await asyncio.to_thread(silent.accept)
            else:
                web.dribble = True
                while len(web.asked) == count:
                    await pause(0.005)
        if by_tls:
            peer.close()


async def test_key_server_is_trusted_by_the_truststore_of_the_jaas_line(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(write(tmp_path, "web.pem", certificate("web")))
    own_truststore = write(tmp_path, "ours.pem", authority(OURS).certificate)
    other_truststore = write(tmp_path, "others.pem", authority("another").certificate)
    with web_server(context) as web:
        web.body = keys_of(tmp_path, one=RSA)

        def settings_with_truststore(truststore: str) -> dict[str, str]:
            line = OPEN[JAAS].removesuffix(";")
            store = f' ssl.truststore.type=PEM ssl.truststore.location="{truststore}";'
            return settings_for(web, **{JAAS: line + store})

        async with running(
            tmp_path / "data", settings=settings_with_truststore(own_truststore)
        ) as server:
            assert await is_let_in(server, signed(RSA, "one"))
        with pytest.raises(ConfigError, match="does not respond"):
            await Server(
                config_of(tmp_path / "other", settings=settings_with_truststore(other_truststore))
            ).start()


async def test_key_server_without_keys_stops_the_start(tmp_path: Path) -> None:
    with web_server() as web:
        for body in (b'{"keys": []}', b"[" * 5000, b"x" * (2 << 20)):
            web.body = body
            with pytest.raises(ConfigError, match="has no"):
                await Server(config_of(tmp_path / "data", settings=settings_for(web))).start()


@pytest.mark.parametrize(
    ("url", "allowed", "said"),
    [
        ("https://example.org/keys", "", "add it to"),
        ("https://example.org/keys", "https://example.org/", "add it to"),
        ("http://example.org/keys", "http://example.org/keys", "use https"),
        ("https://a:b@example.org/keys", "https://a:b@example.org/keys", "write https://host"),
        ("https:///keys", "https:///keys", "write https://host"),
        ("https://h:x/keys", "https://h:x/keys", "write https://host"),
        ("ftp://example.org/keys", "ftp://example.org/keys", "write https://host"),
    ],
)
def test_only_allowed_urls_are_requested(url: str, allowed: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        listeners_of(Config({"log.dirs": "data", **OPEN, URL: url, ALLOWED: allowed}))


def test_response_is_bounded_and_redirects_are_refused() -> None:
    with web_server() as web:
        address = WebAddress(web.url(), None, 30, 30)
        web.body = b"hello"
        assert ask(address, headers={}) == b"hello"
        web.status, web.headers = 302, {"Location": web.url("/elsewhere")}
        with pytest.raises(WebError, match="returned 302") as refused:
            ask(address, headers={})
        assert not refused.value.passes
        web.status, web.headers, web.dribble = 200, {}, True
        web.body = b"x" * 1_000_000
        with pytest.raises(WebError, match="sent an incomplete response"):
            ask(address._replace(answer_s=0.3), headers={})
        eventually(lambda: len(web.asked) == 3)
        assert [request.path for request in web.asked] == ["/keys"] * 3


def test_stored_http_error_keeps_no_connection_open() -> None:
    """A stored error, such as in a log, retains no connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(1) as pool:
        listening.settimeout(10)

        def serve() -> bytes:
            peer, _ = listening.accept()
            with peer:
                peer.settimeout(10)
                peer.recv(10_000)
                peer.sendall(b"HTTP/1.0 503 later\r\n\r\nnobody knows how long this is")
                peer.shutdown(socket.SHUT_WR)
                return peer.recv(1)

        served = pool.submit(serve)
        url = f"http://127.0.0.1:{listening.getsockname()[1]}/keys"
        with pytest.raises(WebError, match="returned 503") as refused:
            ask(WebAddress(url, None, 10, 10), headers={})
        assert served.result() == b""
        assert refused.value.passes
