"""Three wirebrokers that connect to each other and their controller only over SASL_SSL."""

from __future__ import annotations

import asyncio
import base64
import contextlib
from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.servers import broker_of, config_of
from tests.support.protocol.raw_client import RawClient
from tests.support.records.batches import batch
from tests.support.security.sasl_clients import log_in_scram, send_token, shake_hands
from tests.support.security.tls_files import certificate, client_side, tls_configs, write
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import PATIENCE_S, until
from wirebroker.broker.server import Server
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.config.listeners.listeners import between_brokers, to_controllers
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.quorum.membership import leader_refusals
from wirebroker.security.sasl.first_users import first_users

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence
    from pathlib import Path

_PACKAGE = "org.apache.kafka.common.security."
_NAMED = 'required username="broker" password="broker-secret"'
SCRAM = f"{_PACKAGE}scram.ScramLoginModule {_NAMED};"
PLAIN = f'{_PACKAGE}plain.PlainLoginModule {_NAMED} user_broker="broker-secret";'
USERS = [f"SCRAM-SHA-256=[name={name},password={name}-secret]" for name in ("broker", "alice")]


def settings(folder: Path, node_id: int, ports: list[int]) -> dict[str, str]:
    controller = f"127.0.0.1:{ports[0]}"
    roles = "broker,controller" if node_id == 1 else "broker"
    listeners = f"SASL_SSL://127.0.0.1:{ports[node_id]}"
    return {
        **tls_configs(folder),
        "node.id": str(node_id),
        "process.roles": roles,
        "listeners": listeners + (f",CONTROLLER://{controller}" if node_id == 1 else ""),
        "controller.listener.names": "CONTROLLER",
        "listener.security.protocol.map": "CONTROLLER:SASL_SSL,SASL_SSL:SASL_SSL",
        "controller.quorum.voters": f"1@{controller}",
        "security.inter.broker.protocol": "SASL_SSL",
        "sasl.enabled.mechanisms": "SCRAM-SHA-256",
        "listener.name.controller.sasl.enabled.mechanisms": "PLAIN",
        "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-256",
        "sasl.mechanism.controller.protocol": "PLAIN",
        "listener.name.sasl_ssl.scram-sha-256.sasl.jaas.config": SCRAM,
        "listener.name.controller.plain.sasl.jaas.config": PLAIN,
        "connections.max.reauth.ms": "2000",
        "broker.heartbeat.interval.ms": "200",
        "default.replication.factor": "3",
        "min.insync.replicas": "3",
    }


@contextlib.asynccontextmanager
async def cluster(
    tmp_path: Path, node_ids: Sequence[int] = (1, 2, 3), **overrides: str
) -> AsyncIterator[list[Server]]:
    ports = free_ports(4)
    servers: list[Server] = []
    try:
        for node_id in node_ids:
            folder = tmp_path / str(node_id)
            configs = settings(folder, node_id, ports)
            configs |= {name.replace("_", "."): value for name, value in overrides.items()}
            config = config_of(folder / "data", settings=configs)
            users = first_users(USERS) if node_id == 1 else []
            server = Server(config, first_users=users)
            await server.start()
            servers.append(server)
        yield servers
    finally:
        for server in reversed(servers):
            await server.stop()


async def connected(server: Server, folder: Path) -> RawClient:
    streams = await asyncio.open_connection(
        *server.address, ssl=client_side(folder), server_hostname="localhost"
    )
    return RawClient(*streams)


async def secured_client(server: Server, folder: Path) -> RawClient:
    client = await connected(server, folder)
    assert not (await log_in_scram(client, "SCRAM-SHA-256", "alice", "alice-secret")).error_code
    return client


async def test_all_brokers_use_the_same_salt_for_unknown_users(tmp_path: Path) -> None:
    salts: dict[bytes, set[bytes]] = {b"alice": set(), b"nobody": set()}
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path, (1, 2)) as servers:
        for server in servers:
            for user, user_salts in salts.items():
                client = await connected(server, tmp_path)
                await shake_hands(client, "SCRAM-SHA-256")
                answer = await send_token(client, b"n,,n=" + user + b",r=ours")
                user_salts.add(bytes(answer.auth_bytes.split(b",")[1]))
                await client.close()
    assert [len(user_salts) for user_salts in salts.values()] == [1, 1]


async def test_records_are_replicated_to_all_brokers(tmp_path: Path) -> None:
    async with asyncio.timeout(PATIENCE_S), cluster(tmp_path) as servers:
        client = await secured_client(servers[0], tmp_path)
        topic = {"name": "t", "num_partitions": 1, "replication_factor": 3, "assignments": []}
        body = {"topics": [topic], "timeout_ms": 20_000}
        answer = await client.ask(ApiKey.CREATE_TOPICS, 7, {**body, "validate_only": False})
        assert not answer.topics[0].error_code

        def end_offsets() -> list[int]:
            all_found = [
                broker_of(server).replicas.find("t", b"", by_id=False)[0] for server in servers
            ]
            return [partitions[0].log.log_end_offset for partitions in all_found if partitions]

        await until(lambda: len(end_offsets()) == 3)
        partitions, _ = broker_of(servers[0]).replicas.find("t", b"", by_id=False)
        leader_id = partitions[0].leader
        leader = await secured_client(servers[leader_id - 1], tmp_path)
        data = {"name": "t", "partition_data": [{"index": 0, "records": batch(b"v" * 1000)}]}
        produced = await leader.ask(
            ApiKey.PRODUCE,
            12,
            {"acks": -1, "timeout_ms": 20_000, "topic_data": [data], "transactional_id": None},
        )
        assert not produced.responses[0].partition_responses[0].error_code
        assert end_offsets() == [1, 1, 1]
        for connection in (client, leader):
            await connection.close()


async def test_delegation_token_is_valid_on_all_brokers(tmp_path: Path) -> None:
    async with (
        asyncio.timeout(PATIENCE_S),
        cluster(tmp_path, (1, 2), delegation_token_secret_key="hunter2") as servers,
    ):
        client = await secured_client(servers[1], tmp_path)  # the controller is on the other broker
        renewers = [{"principal_type": "User", "principal_name": "broker"}]
        token = await client.ask(
            ApiKey.CREATE_DELEGATION_TOKEN, 3, {"renewers": renewers, "max_lifetime_ms": -1}
        )
        assert (token.error_code, token.principal_name) == (0, "alice")
        token_id = token.token_id
        request_body = {"hmac": token.hmac, "renew_period_ms": 60_000}
        renewed = await client.ask(ApiKey.RENEW_DELEGATION_TOKEN, 2, request_body)
        assert token.issue_timestamp_ms < renewed.expiry_timestamp_ms < token.expiry_timestamp_ms
        for server in servers:
            metadata = broker_of(server).metadata
            await until(partial(lambda view: view.image.delegation_token(token_id), metadata))
            by_token = await connected(server, tmp_path)
            password = base64.b64encode(token.hmac).decode()
            answer = await log_in_scram(
                by_token, "SCRAM-SHA-256", token_id, password, by_token=True
            )
            assert answer.error_code == 0
            request_body = {"hmac": token.hmac, "expiry_time_period_ms": -1}
            refused = await by_token.ask(ApiKey.EXPIRE_DELEGATION_TOKEN, 2, request_body)
            assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            await by_token.close()
        await client.close()


async def test_broker_with_a_refused_login_does_not_join(tmp_path: Path) -> None:
    ports = free_ports(3)
    folder = tmp_path / "1"
    first = Server(config_of(folder / "data", settings=settings(folder, 1, ports)))
    await first.start()
    try:
        wrong = settings(tmp_path / "2", 2, ports) | {
            "initial.broker.registration.timeout.ms": "1000"
        }
        name = "listener.name.controller.plain.sasl.jaas.config"
        wrong[name] = PLAIN.replace('password="broker-secret"', 'password="wrong-secret"')
        second = Server(config_of(tmp_path / "2" / "data", settings=wrong))
        with pytest.raises(StartError, match="it rejects broker with PLAIN") as refused:
            await second.start()
        assert "secret" not in str(refused.value)
    finally:
        await first.stop()


async def test_broker_without_cluster_action_does_not_join(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leader_refusals, "FIRST_PATIENCE_S", 0.5)
    ports = free_ports(3)
    folder = tmp_path / "1"
    name = "listener.name.controller.plain.sasl.jaas.config"
    secured = {"authorizer.class.name": STANDARD, "super.users": "User:broker"}
    known = PLAIN.replace(";", ' user_joiner="joiner-secret";')
    configs = settings(folder, 1, ports) | secured | {name: known}
    first = Server(config_of(folder / "data", settings=configs))
    await first.start()
    try:
        login = f'{_PACKAGE}plain.PlainLoginModule required username="joiner" password='
        late = settings(tmp_path / "2", 2, ports) | secured | {name: f'{login}"joiner-secret";'}
        second = Server(config_of(tmp_path / "2" / "data", settings=late))
        lacking = "User:joiner lacks CLUSTER_ACTION on CLUSTER"
        async with asyncio.timeout(PATIENCE_S):
            with pytest.raises(StartError, match=lacking) as refused:
                await second.start()
        command = "wirebroker acl create --allow User:joiner --operation cluster_action --cluster"
        assert command in refused.value.mend
    finally:
        await first.stop()


async def test_broker_does_not_join_a_cluster_with_an_untrusted_certificate(tmp_path: Path) -> None:
    ports = free_ports(3)
    folder = tmp_path / "1"
    configs = settings(folder, 1, ports)
    write(folder, "broker.pem", certificate(by="another authority"))
    first = Server(config_of(folder / "data", settings=configs))
    await first.start()
    try:
        late = settings(tmp_path / "2", 2, ports) | {
            "initial.broker.registration.timeout.ms": "1000"
        }
        second = Server(config_of(tmp_path / "2" / "data", settings=late))
        with pytest.raises(StartError, match="the TLS handshake failed: unable to get"):
            await second.start()
    finally:
        await first.stop()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"sasl.mechanism.controller.protocol": ""}, "is not supported for outgoing connections"),
        ({"sasl.mechanism.controller.protocol": "SCRAM-SHA-512"}, "sasl.jaas.config is missing"),
        (
            {
                "listener.name.controller.plain.sasl.jaas.config": (
                    f'{_PACKAGE}plain.PlainLoginModule required user_a="a-secret";'
                )
            },
            "username or password is missing",
        ),
    ],
)
def test_unusable_login_settings_are_refused(tmp_path: Path, change, words) -> None:
    config = Config(settings(tmp_path, 2, [1, 2, 3, 4]) | change)
    with pytest.raises(ConfigError, match=words) as refused:
        to_controllers(config)
    assert "a-secret" not in str(refused.value)
    security = between_brokers(config)
    assert security.tls is not None
    assert "secret" not in repr(security)
