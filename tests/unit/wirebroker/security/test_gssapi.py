"""GSSAPI on a listener: messages, failures, and work outside the loop."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import client_of, running
from tests.support.security.sasl_clients import send_token, shake_hands
from tests.support.security.scripted_kerberos import (
    CHOICE,
    JAAS_LINE,
    OFFER,
    RULES,
    ScriptedAcceptor,
    ScriptedInitiator,
    log_in_gssapi,
)
from wirebroker.base.clock import SystemClock
from wirebroker.client.security.security import client_security
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.kerberos import KerberosKeys
from wirebroker.net.client.connection import PeerConnection
from wirebroker.net.client.errors import AuthenticationFailedError
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.security.login.outgoing import connection_method
from wirebroker.security.sasl.gssapi_mechanism import GssapiMechanism
from wirebroker.security.sasl.kerberos import AcceptedContext, Acceptor, KerberosError
from wirebroker.security.sasl.mechanisms import NotProvedError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

FAILED = ErrorCode.SASL_AUTHENTICATION_FAILED
SETTINGS = {
    "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "GSSAPI",
    "listener.name.sasl_plaintext.gssapi.sasl.jaas.config": JAAS_LINE,
    "connection.failed.authentication.delay.ms": "1",
}


@contextlib.asynccontextmanager
async def connected(
    directory: Path, patch: pytest.MonkeyPatch, **settings: str
) -> AsyncIterator[tuple[RawClient, list[ScriptedAcceptor]]]:
    made: list[ScriptedAcceptor] = []

    def acceptor(keys: KerberosKeys) -> ScriptedAcceptor:
        made.append(ScriptedAcceptor(keys))
        return made[-1]

    patch.setattr("wirebroker.security.sasl.sasl_state.Acceptor", acceptor)
    async with (
        running(directory, settings={**SETTINGS, **settings}) as server,
        client_of(server) as client,
    ):
        yield client, made


def mechanism() -> GssapiMechanism:
    return GssapiMechanism(ScriptedAcceptor(), RULES)  # type: ignore[arg-type]


@pytest.mark.parametrize("principal", ["alice@TEST.LOCAL", "alice/host@TEST.LOCAL"])
def test_ticket_and_security_layer_choice_authenticate_a_user(principal: str) -> None:
    login = mechanism()
    assert login.step(principal.encode()) == OFFER
    assert login.user is None
    assert login.step(CHOICE + b"somebody-else@TEST.LOCAL") == b""
    assert login.user == "alice"


def test_kerberos_exchange_may_take_several_messages() -> None:
    login = mechanism()
    assert login.step(b"+alice@TEST.LOCAL") == b"more"
    assert login.step(b"x") == OFFER
    login.step(CHOICE)
    assert login.user == "alice"


@pytest.mark.parametrize(
    ("messages", "why"),
    [
        ([b"!the ticket has expired"], "the ticket has expired"),
        ([b"alice@OTHER.ORG", CHOICE], "no rule"),
        ([b"alice@TEST.LOCAL", b"\x01\x00\x00\x00"], "the token is not wrapped"),
        ([b"alice@TEST.LOCAL", b"wrapped:\x01"], "chose no protection level"),
        ([b"alice@TEST.LOCAL", b"wrapped:\x04\x00\x00\x00"], "not offered"),
        ([b"alice@TEST.LOCAL", b"wrapped:\x03\x00\x00\x00"], "not offered"),
    ],
)
def test_refused_login_has_a_reason(messages: list[bytes], why: str) -> None:
    login = mechanism()
    *before, last = messages
    for message in before:
        login.step(message)
    with pytest.raises(NotProvedError, match=why) as refused:
        login.step(last)
    assert not refused.value.passes
    assert login.user is None


class ExpiredError(Exception):
    """The context has expired (GSS_S_CONTEXT_EXPIRED), as in gssapi."""

    min_code = 0

    def __str__(self) -> str:
        return "Major (786432): The context has expired, Minor (0): Unknown error"


def test_ticket_expiring_during_the_login_is_refused() -> None:
    def expired(*_: object) -> None:
        raise ExpiredError

    library = SimpleNamespace(
        raw=SimpleNamespace(wrap=expired, unwrap=expired),
        exceptions=SimpleNamespace(GSSError=ExpiredError),
    )
    context = AcceptedContext(library, None)
    for step in (context.wrap, context.unwrap):
        with pytest.raises(KerberosError, match=r"^Major \(786432\): The context has expired$"):
            step(OFFER)


async def test_login_runs_outside_the_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async with connected(tmp_path, monkeypatch) as (client, acceptors):
        answer = await log_in_gssapi(client, "alice@TEST.LOCAL")
        assert (answer.error_code, answer.auth_bytes, answer.session_lifetime_ms) == (0, b"", 0)
        assert (await client.ask(ApiKey.METADATA, 12, {"topics": []})).brokers
        threads = {name for acceptor in acceptors for name in acceptor.threads}
        assert threads
        assert all(name.startswith("login") for name in threads)


async def test_clients_from_before_kip_152_log_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(tmp_path, monkeypatch) as (client, _):
        await shake_hands(client, "GSSAPI", version=0)
        for message, answer in ((b"alice@TEST.LOCAL", OFFER), (CHOICE, b"")):
            client._writer.write(len(message).to_bytes(4) + message)
            length = int.from_bytes(await client._reader.readexactly(4))
            assert await client._reader.readexactly(length) == answer
        assert (await client.ask(ApiKey.METADATA, 12, {"topics": []})).brokers


async def test_refused_client_gets_kafkas_error_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO", logger="wirebroker")
    async with connected(tmp_path, monkeypatch) as (client, _):
        answer = await log_in_gssapi(client, "!an unknown key")
        assert answer.error_code == FAILED
        assert answer.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL "
            "mechanism GSSAPI"
        )
        assert await client.is_closed()
    assert "authentication failed: an unknown key" in caplog.text


async def test_temporary_failure_closes_the_connection_without_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(tmp_path, monkeypatch) as (client, _):
        await shake_hands(client, "GSSAPI")
        await client.send(ApiKey.SASL_AUTHENTICATE, 2, {"auth_bytes": b"~not valid yet"})
        assert await client.is_closed()


async def test_reauthentication_must_be_the_same_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ends = {"connections.max.reauth.ms": "60000"}
    async with connected(tmp_path, monkeypatch, **ends) as (client, _):
        assert (await log_in_gssapi(client, "alice@TEST.LOCAL")).session_lifetime_ms == 60_000
        assert (await log_in_gssapi(client, "alice@TEST.LOCAL")).error_code == 0
    async with connected(tmp_path, monkeypatch, **ends) as (client, _):
        await log_in_gssapi(client, "alice@TEST.LOCAL")
        answer = await log_in_gssapi(client, "bob@TEST.LOCAL")
        assert answer.error_code == FAILED
        assert "Cannot change principals" in answer.error_message


async def test_bare_gssapi_failure_closes_the_connection(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with connected(tmp_path, monkeypatch) as (client, _):
        await shake_hands(client, "GSSAPI", version=0)
        client._writer.write((3).to_bytes(4) + b"!no")
        assert await client.is_closed()
    async with connected(tmp_path, monkeypatch) as (client, _):
        await shake_hands(client, "GSSAPI")
        assert (await send_token(client, b"!no")).error_code == FAILED


def test_missing_key_or_library_is_a_temporary_failure(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # None in sys.modules makes the import fail on any machine.
    monkeypatch.setitem(__import__("sys").modules, "gssapi", None)
    acceptor = Acceptor(KerberosKeys(principal="kafka/a@B", keytab="/nowhere"))
    with pytest.raises(ConfigError, match="pip install 'wirebroker"):
        acceptor.load()
    with pytest.raises(KerberosError) as refused:
        acceptor.begin()
    assert refused.value.passes


@pytest.mark.parametrize("service", ["kafka", "unknown"])
async def test_client_logs_in_with_its_own_ticket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, service: str
) -> None:
    monkeypatch.setattr("wirebroker.security.sasl.sasl_state.Acceptor", ScriptedAcceptor)
    monkeypatch.setattr("wirebroker.security.login.kerberos_login.Initiator", ScriptedInitiator)
    security = connection_method(
        client_security(
            {
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.kerberos.service.name": service,
                "sasl.jaas.config": JAAS_LINE,
            }
        )
    )
    async with running(tmp_path, settings=SETTINGS) as server:
        opening = PeerConnection.open(
            PeerAddress(*server.address),
            dialer=security.dialer,
            settings=ClientSettings(client_id="us"),
            clock=SystemClock(),
            handshake=security.handshake,
        )
        if service == "unknown":
            with pytest.raises(AuthenticationFailedError, match=r"unknown/127.0.0.1 is unknown"):
                await opening
            return
        connection = await opening
        assert (await connection.request(ApiKey.METADATA, {"topics": []})).brokers
        await connection.close()
