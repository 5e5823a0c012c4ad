"""`wirebroker doctor` on a healthy and on a faulty broker."""

from __future__ import annotations

import asyncio
import random

import confluent_kafka
import pytest

from tests.support.brokers.servers import ThreadedServer, config_of
from tests.support.cli.verbs import Verbs
from wirebroker.base.clock import SystemClock
from wirebroker.client.addresses import addresses_of
from wirebroker.client.checks.health_checks import HealthLimits, Weight, run_checks
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.tcp_dialer import TcpDialer

LIMITS = HealthLimits(10_000, 0.0, 5000, 0.0, is_local=True)


class ClockAhead(SystemClock):
    """A clock that is an hour ahead."""

    def now_ms(self):
        return super().now_ms() + 3_600_000


def client_of(verbs, clock):
    return KafkaClient(
        addresses_of(verbs.bootstrap),
        timeout_s=30,
        dialer=TcpDialer(),
        clock=clock,
        random=random.Random(1),
    )


def test_healthy_broker_passes_all_checks(verbs):
    verbs.do("topic", "create", "well")
    result = verbs.do("doctor", "--free", "0")
    assert result.lines == [
        "ok  addresses",
        "ok  partitions",
        "ok  groups",
        "ok  disks",
        "ok  quorum and clock",
        "ok  transactions",
        "ok  moves",
    ]


def test_lag_disks_and_hanging_groups_are_reported_with_a_next_step(verbs):
    verbs.do("topic", "create", "ill")
    verbs.feed(b"1\n2\n3\n", "produce", "ill")
    verbs.do("group", "seek", "slow", "--to", "start", "-t", "ill", "--yes")
    asyncio.run(join_and_never_sync(verbs))
    result = verbs.run("doctor", "--lag", "3", "--free", "100", "--wait", "0")
    assert result.status == 1
    assert "!   groups: group slow is 3 records behind" in result.out
    assert "next: it has no members: start its consumers" in result.out
    assert (
        "!!  groups: group hanging has been in CompletingRebalance for more than 0 s" in result.out
    )
    assert "!!  disks: broker 1, " in result.out
    assert "ok  addresses" in result.lines
    verbs.do("group", "delete", "slow", "--yes")


async def join_and_never_sync(verbs):
    async with client_of(verbs, SystemClock()) as client:
        body = {
            "group_id": "hanging",
            "session_timeout_ms": 6000,
            "rebalance_timeout_ms": 30_000,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": b""}],
        }
        joined = await client.request_of_coordinator(
            "hanging", ApiKey.JOIN_GROUP, body, error_of=lambda answer: int(answer.error_code)
        )
        again = body | {"member_id": joined.member_id}
        await client.request_of_coordinator(
            "hanging", ApiKey.JOIN_GROUP, again, error_of=lambda answer: int(answer.error_code)
        )


def test_clock_skew_and_open_transactions_are_reported(verbs):
    verbs.do("topic", "create", "held")
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": verbs.bootstrap, "transactional.id": "held"}
    )
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("held", b"value")
    assert producer.flush(30) == 0

    async def ask():
        async with client_of(verbs, ClockAhead()) as client:
            return await run_checks(client, LIMITS)

    findings = asyncio.run(ask())
    producer.abort_transaction(30)
    (skew,) = findings["quorum and clock"]
    assert skew.weight is Weight.WARNING
    assert skew.what.startswith("the clock of controller 1 differs from the local one by -3")
    (transaction,) = findings["transactions"]
    assert transaction.what.startswith("transaction held has been open for 36")


@pytest.mark.parametrize("is_local", [True, False])
def test_loopback_address_is_reported_unless_local(verbs, is_local):
    async def ask():
        async with client_of(verbs, SystemClock()) as client:
            assert client.is_asked_locally
            return await run_checks(client, LIMITS._replace(is_local=is_local))

    findings = asyncio.run(ask())["addresses"]
    assert [finding.what for finding in findings] == (
        [] if is_local else ["broker 1 advertises 127.0.0.1"]
    )


@pytest.fixture
def guarded(tmp_path, capsys):
    """Run a broker with ACLs, and verbs on it as a user without restrictions so far."""
    settings = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with ThreadedServer(config_of(tmp_path / "data", settings=settings)) as server:
        host, port = server.address
        yield Verbs(f"{host}:{port}", capsys)


def deny(guarded, *resource):
    guarded.do("acl", "create", "--deny", "User:ANONYMOUS", "--operation", "describe", *resource)


def test_checks_without_authorization_are_inconclusive(guarded):
    guarded.do("topic", "create", "secret")
    guarded.do("topic", "create", "public")
    assert "ok  partitions" in guarded.do("doctor", "--free", "0").lines
    deny(guarded, "--topic", "secret")
    result = guarded.do("doctor", "--free", "0")
    hidden = "?   partitions: 1 topics are hidden from this user and were not checked: secret"
    assert hidden in result.lines
    assert "ok  groups" in result.lines

    deny(guarded, "--cluster")
    result = guarded.do("doctor", "--free", "0")
    for subject in ("partitions", "groups", "transactions"):
        start = f"?   {subject}: only the {subject} that this user may see were checked"
        assert any(line.startswith(start) for line in result.lines), result.out
    assert "?   disks: the log directories of broker 1 cannot be described" in result.out
    assert [line for line in result.lines if line.startswith("ok")] == ["ok  addresses"]
