"""Verification of a transaction by its remote coordinator before an append."""

from __future__ import annotations

from random import Random
from types import SimpleNamespace
from typing import Any

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.requests import create_topic
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordination.transactions.remote_verification import RemoteVerification
from wirebroker.coordination.transactions.transaction_verifier import Support, TransactionVerifier
from wirebroker.coordinator.controller.image.cluster_image import NO_LEADER
from wirebroker.coordinator.groups.partitions import TRANSACTION_STATE
from wirebroker.coordinator.transactions.partitions import Claim
from wirebroker.net.client.node import Node
from wirebroker.net.client.settings import ClientSettings, PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer

CLAIM = Claim("id", 7, 0, frozenset({("t", 0), ("u", 0)}))


class Remote:
    """Node 2, which coordinates all ids and responds sequentially."""

    def __init__(self, *answers: ErrorCode) -> None:
        self.answers = list(answers)
        self.asked: list[bool] = []

    def coordinator(self, transactional_id: str) -> int:
        assert transactional_id == CLAIM.transactional_id
        return 2

    async def ask(self, node_id: int, claim: Claim, *, verify_only: bool):
        assert (node_id, claim) == (2, CLAIM)
        self.asked.append(verify_only)
        return dict.fromkeys(claim.partitions, self.answers.pop(0))


def verifier_of(server, remote) -> TransactionVerifier:
    broker = broker_of(server)
    return TransactionVerifier(
        broker.transactions, remote=remote, clock=broker.clock, config=broker.config
    )


async def test_remote_coordinator_is_asked_to_verify(tmp_path):
    async with running(tmp_path) as server:
        remote = Remote(ErrorCode.NONE, ErrorCode.PRODUCER_FENCED, ErrorCode.NONE)
        ask: Any = verifier_of(server, remote).ask
        admitted = dict.fromkeys(CLAIM.partitions, ErrorCode.NONE)
        assert await ask(CLAIM, Support.DEFAULT_ERROR) == admitted
        fenced = dict.fromkeys(CLAIM.partitions, ErrorCode.INVALID_PRODUCER_EPOCH)
        assert await ask(CLAIM, Support.GENERIC_ERROR) == fenced
        assert await ask(CLAIM, Support.ADD_PARTITION) == admitted
        assert remote.asked == [True, True, False]


async def test_adding_a_partition_is_retried_until_the_last_transaction_ended(tmp_path):
    async with running(tmp_path) as server:
        remote = Remote(ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.NONE)
        ask: Any = verifier_of(server, remote).ask
        verdict = await ask(CLAIM, Support.ADD_PARTITION)
        assert set(verdict.values()) == {ErrorCode.NONE}
        assert remote.asked == [False, False]


def metadata_with(leader: int):
    topic = SimpleNamespace(partitions={0: SimpleNamespace(leader=leader)})
    return SimpleNamespace(image=SimpleNamespace(topics={TRANSACTION_STATE: topic}))


def test_coordinator_is_the_partition_leader():
    coordinators = {
        leader: RemoteVerification(1, metadata_with(leader), lambda _: None).coordinator("id")
        for leader in (NO_LEADER, 1, 2)
    }
    assert coordinators == {NO_LEADER: None, 1: None, 2: 2}


async def test_verification_is_requested_over_the_network(tmp_path):
    async with running(tmp_path) as server, client_of(server) as client:
        await create_topic(client, "t", 1)
        await create_topic(client, "u", 1)
        node = Node(
            PeerAddress(*server.address),
            dialer=TcpDialer(),
            settings=ClientSettings(),
            clock=SystemClock(),
            random=Random(1),
        )
        remote = RemoteVerification(1, broker_of(server).metadata, {2: node}.get)
        errors = await remote.ask(2, CLAIM, verify_only=True)
        # There is no transaction and no coordinator yet.
        assert errors == dict.fromkeys(CLAIM.partitions, ErrorCode.NOT_COORDINATOR)
        lost = dict.fromkeys(CLAIM.partitions, ErrorCode.NETWORK_EXCEPTION)
        assert await remote.ask(3, CLAIM, verify_only=True) == lost
        await node.close()
    assert await remote.ask(2, CLAIM, verify_only=False) == lost
