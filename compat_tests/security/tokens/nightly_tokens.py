"""Delegation tokens are in the metadata: they move with a directory and apply cluster-wide."""

from __future__ import annotations

import asyncio
import contextlib
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.cluster.nodes import Cluster, JavaBroker, MemberBroker
from compat_tests.cluster.own_controller import own_cluster
from compat_tests.security.secured import secured_broker
from compat_tests.security.tokens.test_delegation_tokens import (
    SETTINGS,
    Clients,
    clients_at,
    clients_of,
    user,
)
from tests.support.tools.ports import HOST, free_ports
from wirebroker.base.clock import pause
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path


pytestmark = [pytest.mark.java, pytest.mark.long]

PATIENCE_S: Final = 60.0
SECRET: Final = {"delegation.token.secret.key": "hunter2"}
MODULES: Final = "org.apache.kafka.common.security."
USERS: Final = " ".join(f'user_{name}="{name}-secret"' for name in ("admin", "alice", "bob"))


async def shown(clients: Clients) -> dict[str, tuple[Any, ...]]:
    answer = await clients.describe("admin")
    assert answer.error_code == 0
    return {
        token.token_id: (
            token.principal_name,
            token.token_requester_principal_name,
            token.issue_timestamp,
            token.expiry_timestamp,
            token.max_timestamp,
            token.hmac,
            [renewer.principal_name for renewer in token.renewers],
        )
        for token in answer.tokens
    }


async def lets_in(clients: Clients, name: str, token_id: str, hmac: bytes) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while (await clients.by_token(name, token_id, hmac)).error_code:
            await pause(0.1)


async def when_known(ask: Callable[[], Awaitable[Any]]) -> None:
    """Change a token; retry while Apache Kafka's controller does not know it yet.

    The controller has its own token cache, which brokers may be ahead of.
    """
    async with asyncio.timeout(PATIENCE_S):
        while (answer := await ask()).error_code == ErrorCode.DELEGATION_TOKEN_NOT_FOUND:
            await pause(0.1)
    assert answer.error_code == 0


@pytest.mark.parametrize("kinds", [("apache", "wirebroker"), ("wirebroker", "apache")])
def test_both_brokers_accept_tokens_stored_in_directory(
    tmp_path: Path, kinds: tuple[str, str]
) -> None:
    settings = {
        **SETTINGS,
        "log.dirs": str(tmp_path / "data"),
        # Each broker starts from the other's snapshot.
        "metadata.log.max.record.bytes.between.snapshots": "500",
    }
    expected: dict[str, tuple[Any, ...]] = {}

    async def take_over(kind: str) -> None:
        async with clients_of(brokers[kind]) as clients:
            assert await shown(clients) == expected
            for token_id, token in expected.items():
                await lets_in(clients, f"by {token_id}", token_id, token[5])
                await when_known(partial(clients.renew, "bob", token[5], 3_600_000))
            for _ in range(3):
                await clients.create("alice", renewers=[user("bob")])
                expired = await clients.create("alice")
                await when_known(partial(clients.expire, "alice", expired.hmac))
            async with asyncio.timeout(PATIENCE_S):
                while expired.token_id in await shown(clients):
                    await pause(0.05)
            expected.clear()
            expected.update(await shown(clients))

    brokers = {kind: secured_broker(kind, tmp_path / kind, settings) for kind in kinds}
    for kind in (*kinds, *kinds):
        brokers[kind].start()
        try:
            asyncio.run(take_over(kind))
        finally:
            brokers[kind].stop()
    assert len(expected) == 12


def with_login(node: JavaBroker | MemberBroker, ports: list[int]) -> None:
    node.port = ports[0]
    prefix = "listener.name.clients"
    node.settings |= {
        **SECRET,
        "listeners": f"PLAINTEXT://{HOST}:{ports[0]},CLIENTS://{HOST}:{ports[1]}",
        "advertised.listeners": f"PLAINTEXT://{HOST}:{ports[0]},CLIENTS://{HOST}:{ports[1]}",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,"
        "CLIENTS:SASL_PLAINTEXT",
        "inter.broker.listener.name": "PLAINTEXT",
        "sasl.enabled.mechanisms": "PLAIN,SCRAM-SHA-256",
        f"{prefix}.plain.sasl.jaas.config": f"{MODULES}plain.PlainLoginModule required {USERS};",
        f"{prefix}.scram-sha-256.sasl.jaas.config": f"{MODULES}scram.ScramLoginModule required;",
    }


@pytest.mark.parametrize("controller", ["apache", "wirebroker"])
def test_all_brokers_accept_token_under_either_controller(tmp_path: Path, controller: str) -> None:
    if controller == "apache":
        cluster = Cluster(tmp_path, settings=SECRET)
        cluster.start_controllers()
    else:
        cluster = own_cluster(tmp_path, SECRET)
    ports = free_ports(4)
    try:
        brokers: dict[int, JavaBroker | MemberBroker] = {
            1: JavaBroker(cluster, 1),
            2: MemberBroker(cluster, 2),
        }
        for index, (node_id, broker) in enumerate(brokers.items()):
            with_login(broker, ports[2 * index : 2 * index + 2])
            cluster.brokers[node_id] = broker
            broker.start()
        asyncio.run(exchange(ports))
    finally:
        cluster.stop()


async def exchange(ports: list[int]) -> None:
    """Create a token at each broker; both accept both tokens, and refuse changes by others."""
    async with contextlib.AsyncExitStack() as stack:
        nodes = [await stack.enter_async_context(clients_at(*ports[at : at + 2])) for at in (0, 2)]
        for number, node in enumerate(nodes):
            created = await node.create("alice", renewers=[user("bob")])
            assert (created.error_code, created.principal_name) == (0, "alice")
            for other_node in nodes:
                await lets_in(other_node, f"token {number}", created.token_id, created.hmac)
                await when_known(partial(other_node.renew, "bob", created.hmac))
                refused = await other_node.expire(f"token {number}", created.hmac)
                assert refused.error_code == ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
            await when_known(partial(nodes[1 - number].expire, "alice", created.hmac))
