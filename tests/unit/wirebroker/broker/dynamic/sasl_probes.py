"""What shows that changes of SASL's configs take effect (test_dynamic_configs.py)."""

from __future__ import annotations

from unittest import mock

from tests.support.protocol.raw_client import RawClient
from tests.support.security.sasl_clients import log_in_plain, shake_hands
from tests.support.security.scripted_kerberos import JAAS_LINE, ScriptedAcceptor, log_in_gssapi
from tests.support.tools.ports import free_port
from tests.unit.wirebroker.broker.dynamic.dynamic_config_kit import World, probe
from wirebroker.codecs.errors import ErrorCode

_REFUSED = ErrorCode.SASL_AUTHENTICATION_FAILED
MODULE = "org.apache.kafka.common.security.plain.PlainLoginModule"


async def open_listener(w: World, *changes: tuple[str, str]) -> int:
    port = free_port()
    two = f"PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:{port}"
    assert await w.change(("listeners", two), *changes, broker="1") is ErrorCode.NONE
    return port


@probe("sasl.enabled.mechanisms")
async def _mechanisms(w: World) -> None:
    name = "sasl.enabled.mechanisms"
    port = await open_listener(w, (name, "SCRAM-SHA-256"))
    for enabled in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        await w.set((name, enabled))
        client = await RawClient.connect(("127.0.0.1", port))
        assert (await shake_hands(client, enabled)).mechanisms == [enabled]
        await client.close()
    assert await w.change((name, "CRAM-MD5"), broker="1") is ErrorCode.INVALID_REQUEST


@probe("sasl.jaas.config")
async def _users(w: World) -> None:
    name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
    mechanisms = ("sasl.enabled.mechanisms", "PLAIN")
    port = await open_listener(w, mechanisms, (name, f'{MODULE} required user_a="x";'))
    for password in ("x", "y"):
        line = f'{MODULE} required user_a="{password}";'
        assert await w.change((name, line), broker="1") is ErrorCode.NONE
        client = await RawClient.connect(("127.0.0.1", port))
        assert (await log_in_plain(client, "a", password)).error_code == 0
        await client.close()
    # Without listener and mechanism it would not be read.
    unread = await w.change(("sasl.jaas.config", line), broker="1")
    assert unread is ErrorCode.INVALID_REQUEST


@probe("sasl.mechanism.inter.broker.protocol")
async def _between_brokers(w: World) -> None:
    """It names the brokers' own mechanism, and no listener here uses SASL."""
    await w.set(("sasl.mechanism.inter.broker.protocol", "PLAIN"))
    assert w.broker.config.str("sasl.mechanism.inter.broker.protocol") == "PLAIN"


@probe("sasl.kerberos.principal.to.local.rules")
async def _rules(w: World) -> None:
    name = "sasl.kerberos.principal.to.local.rules"
    line = ("listener.name.sasl_plaintext.gssapi.sasl.jaas.config", JAAS_LINE)
    with mock.patch("wirebroker.security.sasl.sasl_state.Acceptor", ScriptedAcceptor):
        port = await open_listener(w, ("sasl.enabled.mechanisms", "GSSAPI"), line)
        for rules, error in (("DEFAULT", ErrorCode.NONE), ("RULE:[2:$1]", _REFUSED)):
            await w.set((name, rules))
            client = await RawClient.connect(("127.0.0.1", port))
            answer = await log_in_gssapi(client, "alice@TEST.LOCAL")
            assert answer.error_code == error
            await client.close()
    assert await w.change((name, "alice"), broker="1") is ErrorCode.INVALID_REQUEST


@probe("sasl.kerberos.service.name")
async def _service(w: World) -> None:
    """It names the service of a broker's tickets, which are not used here."""
    await w.set(("sasl.kerberos.service.name", "broker"))
    assert w.broker.config.str("sasl.kerberos.service.name") == "broker"
