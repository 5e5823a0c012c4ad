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
from wirebroker.client.checks.checkup import CheckupLimits, Weight, ask_all
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.net.client.tcp_dialer import TcpDialer

LIMITS = CheckupLimits(10_000, 0.0, 5000, 0.0, is_local=True)


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


def test_a_broker_that_is_well_is_well(verbs):
    verbs.do("topic", "create", "well")
    said = verbs.do("doctor", "--free", "0")
    assert said.lines == [
        "ok  addresses",
        "ok  partitions",
        "ok  groups",
        "ok  disks",
        "ok  quorum and clock",
        "ok  transactions",
        "ok  moves",
    ]


def test_lag_disks_and_groups_that_hang_are_told_with_the_next_step(verbs):
    verbs.do("topic", "create", "ill")
    verbs.feed(b"1\n2\n3\n", "produce", "ill")
    verbs.do("group", "seek", "slow", "--to", "start", "-t", "ill", "--yes")
    asyncio.run(join_and_never_sync(verbs))
    said = verbs.run("doctor", "--lag", "3", "--free", "100", "--wait", "0")
    assert said.status == 1
    assert "!   groups: group slow is 3 records behind" in said.out
    assert "next: it has no members: start its consumers" in said.out
    assert "!!  groups: group hanging is in CompletingRebalance for more than 0 s" in said.out
    assert "!!  disks: broker 1, " in said.out
    assert "ok  addresses" in said.lines
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


def test_clocks_and_open_transactions_are_looked_at(verbs):
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
            return await ask_all(client, LIMITS)

    found = asyncio.run(ask())
    producer.abort_transaction(30)
    (skew,) = found["quorum and clock"]
    assert skew.weight is Weight.WARNING
    assert skew.what.startswith("the clock of controller 1 is -3")
    (held,) = found["transactions"]
    assert held.what.startswith("transaction held is open for 36")


@pytest.mark.parametrize("is_local", [True, False])
def test_an_address_of_one_machine_is_none_for_others(verbs, is_local):
    async def ask():
        async with client_of(verbs, SystemClock()) as client:
            assert client.is_asked_locally
            return await ask_all(client, LIMITS._replace(is_local=is_local))

    found = asyncio.run(ask())["addresses"]
    assert [each.what for each in found] == (
        [] if is_local else ["broker 1 tells clients to connect to 127.0.0.1"]
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


def test_what_a_user_may_not_see_is_open_and_not_well(guarded):
    guarded.do("topic", "create", "secret")
    guarded.do("topic", "create", "public")
    assert "ok  partitions" in guarded.do("doctor", "--free", "0").lines
    deny(guarded, "--topic", "secret")
    said = guarded.do("doctor", "--free", "0")
    hidden = "?   partitions: 1 topics are hidden from this user, and were not looked at: secret"
    assert hidden in said.lines
    assert "ok  groups" in said.lines

    deny(guarded, "--cluster")
    said = guarded.do("doctor", "--free", "0")
    for what in ("partitions", "groups", "transactions"):
        start = f"?   {what}: only those {what} were looked at that this user may see"
        assert any(line.startswith(start) for line in said.lines), said.out
    assert "?   disks: broker 1 does not show its directories" in said.out
    assert [line for line in said.lines if line.startswith("ok")] == ["ok  addresses"]
