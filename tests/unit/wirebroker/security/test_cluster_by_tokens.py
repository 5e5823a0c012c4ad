"""Brokers that authenticate to each other and the controller by OAUTHBEARER or Kerberos."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, config_of
from tests.support.security.scripted_kerberos import JAAS_LINE, ScriptedAcceptor, ScriptedInitiator
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import PATIENCE_S, until
from tests.unit.wirebroker.security.test_oauth import RSA, keys_in, signed
from wirebroker.broker.server import Server
from wirebroker.config import StartError
from wirebroker.quorum.membership.join import config_of_member, free_node_id

if TYPE_CHECKING:
    from pathlib import Path

_MODULE = "org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule"
_KEYS = "sasl.oauthbearer.jwks.endpoint.url"
_TOKEN = "sasl.oauthbearer.token.endpoint.url"


def common(mechanism: str, folder: Path) -> dict[str, str]:
    """Return the settings of both brokers."""
    settings = {
        "listener.security.protocol.map": "CONTROLLER:SASL_PLAINTEXT,INSIDE:SASL_PLAINTEXT",
        "controller.listener.names": "CONTROLLER",
        "inter.broker.listener.name": "INSIDE",
        "sasl.enabled.mechanisms": mechanism,
        "sasl.mechanism.inter.broker.protocol": mechanism,
        "sasl.mechanism.controller.protocol": mechanism,
        "broker.heartbeat.interval.ms": "200",
    }
    line = JAAS_LINE if mechanism == "GSSAPI" else f"{_MODULE} required;"
    for listener in ("controller", "inside"):
        settings[f"listener.name.{listener}.{mechanism.lower()}.sasl.jaas.config"] = line
    if mechanism == "GSSAPI":
        return {**settings, "sasl.kerberos.service.name": "kafka"}
    keys = keys_in(folder / "keys.json", one=RSA)
    (folder / "token").write_text(signed(RSA, "one", sub="broker"))
    any_maker = {
        "sasl.oauthbearer.allow.unverified.audience": "true",
        "sasl.oauthbearer.allow.unverified.issuer": "true",
    }
    return {**settings, **any_maker, _KEYS: keys.as_uri(), _TOKEN: (folder / "token").as_uri()}


@pytest.mark.parametrize("mechanism", ["OAUTHBEARER", "GSSAPI"])
async def test_joining_broker_gets_a_free_id_and_registers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mechanism: str
) -> None:
    monkeypatch.setattr("wirebroker.security.sasl.sasl_state.Acceptor", ScriptedAcceptor)
    monkeypatch.setattr("wirebroker.security.login.kerberos_login.Initiator", ScriptedInitiator)
    control, first_port, second_port = free_ports(3)
    settings = common(mechanism, tmp_path)
    first = Server(
        config_of(
            tmp_path / "one",
            settings={
                **settings,
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": f"INSIDE://127.0.0.1:{first_port},CONTROLLER://127.0.0.1:{control}",
                "controller.quorum.voters": f"1@127.0.0.1:{control}",
            },
        )
    )
    servers = [first]
    async with asyncio.timeout(PATIENCE_S):
        await first.start()
        try:
            flags = {**settings, "listeners": f"INSIDE://127.0.0.1:{second_port}"}
            controller = f"127.0.0.1:{control}"

            def member(node_id: int) -> Server:
                directory = str(tmp_path / "two")
                return Server(
                    config_of_member(
                        controller, flags=flags, node_id=node_id, data_directory=directory
                    )
                )

            free = await asyncio.to_thread(
                free_node_id, controller, member(1).config, timeout_s=PATIENCE_S
            )
            assert free == 2
            servers.append(member(free))
            await servers[1].start()
            await until(lambda: len(broker_of(first).metadata.image.brokers) == 2)
        finally:
            for server in reversed(servers):
                await server.stop()


async def test_invalid_token_cannot_request_a_free_id(tmp_path: Path) -> None:
    control, port = free_ports(2)
    settings = common("OAUTHBEARER", tmp_path)
    first = Server(
        config_of(
            tmp_path / "one",
            settings={
                **settings,
                "process.roles": "broker,controller",
                "node.id": "1",
                "listeners": f"INSIDE://127.0.0.1:{port},CONTROLLER://127.0.0.1:{control}",
                "controller.quorum.voters": f"1@127.0.0.1:{control}",
            },
        )
    )
    async with asyncio.timeout(PATIENCE_S):
        await first.start()
        try:
            (tmp_path / "token").write_text("a.b.c")
            config = config_of_member(
                f"127.0.0.1:{control}",
                flags={**settings, "listeners": f"INSIDE://127.0.0.1:{port}"},
                node_id=1,
                data_directory=str(tmp_path / "two"),
            )
            with pytest.raises(StartError, match="invalid_token"):
                await asyncio.to_thread(free_node_id, f"127.0.0.1:{control}", config, timeout_s=2)
        finally:
            await first.stop()
