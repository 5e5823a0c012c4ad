"""Changes of ACLs, users, quotas and placement, on wirebroker and Apache Kafka with SASL and ACLs.

Brokers tell a logged-in user its permitted operations (KIP-430), which the console's decisions must
equal.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from compat_tests.conftest import new_topic_name
from compat_tests.security.listeners import guarded_broker
from compat_tests.security.secured import PASSWORD
from tests.support.brokers.collectors import collecting, snapshot_when
from tests.support.console.changes import made, prepared
from tests.support.tools.ports import HOST
from wirebroker.base.clock import SystemClock
from wirebroker.client.configs.quotas import EntityQuotas, list_quotas
from wirebroker.client.errors import ClientError
from wirebroker.client.security.acls import OPERATIONS, AccessRule, RuleFilter, list_acls
from wirebroker.client.security.users import list_users
from wirebroker.client.topics.topics import create_topics
from wirebroker.client.transactions.transactions import describe_transaction
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.console.access.acl_decisions import AccessOutcome, AccessQuestion, decisions_by
from wirebroker.console.access.acl_effects import operations_on
from wirebroker.console.access.brokers_access import brokers_access
from wirebroker.console.changes.change import ChangeError
from wirebroker.console.model.settings import ClusterSettings, open_client

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
    from pathlib import Path

    from compat_tests.security.listeners import Guarded
    from wirebroker.client.configs.quotas import Entity
    from wirebroker.console.model.collector import Collector

ALICE = "User:alice"
EVIL = "<b>'\"; $(reboot)"
_SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule"


@pytest.fixture(
    scope="module", params=["wirebroker", pytest.param("apache", marks=pytest.mark.java)]
)
def guarded(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Guarded, Path]]:
    with guarded_broker(request.param, tmp_path_factory) as running:
        yield running


@contextlib.asynccontextmanager
async def administered(guarded: tuple[Guarded, Path]) -> AsyncIterator[tuple[Collector, str]]:
    """Create a topic; return a collector as a super user, and the topic."""
    topic = new_topic_name()
    async with collecting(guarded[0].bootstrap) as c:
        await create_topics(c.client, {topic: 2}, configs={})
        await snapshot_when(c, lambda s: topic in s.topics)
        yield c, topic


async def until_quotas(c: Collector, entity: Entity, expected: list[EntityQuotas]) -> None:
    """Wait until the broker has these quotas."""
    await expect(c, lambda: list_quotas(c.client, entity, is_strict=True), expected)


async def expect(c: Collector, read: Callable[[], Awaitable[Any]], expected: Any) -> None:
    """Read until the result is as expected: a broker applies a change after its response."""
    found: Any = None
    async for _ in c.client.within(30.0).tries():
        found = await read()
        if found == expected:
            return
    assert found == expected


async def operations_of_alice(guarded: tuple[Guarded, Path], topic: str) -> set[str]:
    """Return the operations on a topic that a broker permits to alice, over SASL_SSL."""
    broker, folder = guarded
    properties = {
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.jaas.config": f'{_SCRAM} required username="alice" password="{PASSWORD}";',
        "ssl.truststore.location": str(folder / "authority.pem"),
        "ssl.truststore.type": "PEM",
    }
    settings = ClusterSettings("alice", f"{HOST}:{broker.ports['LOGIN']}", properties)
    body = {
        "topics": [{"name": topic}],
        "allow_auto_topic_creation": False,
        "include_topic_authorized_operations": True,
    }
    async with open_client(settings, SystemClock()) as client:
        (row,) = (await client.request(ApiKey.METADATA, body, at_most=12)).topics
    bits = 0 if row.error_code else row.topic_authorized_operations
    return {word for word in operations_on("topic") if bits >> OPERATIONS[word] & 1}


async def decided_for_alice(c: Collector, topic: str) -> set[str]:
    """Return the operations that the console says alice is permitted."""
    decisions = await decisions_by(c, await list_acls(c.client, RuleFilter()))
    return {
        word
        for word in operations_on("topic")
        if decisions.decide(AccessQuestion(ALICE, HOST, word, "topic", topic)).outcome
        is AccessOutcome.ALLOWED
    }


# Alice has Describe where anything is allowed: without it, brokers do not tell the others.
ACL_CASES: list[list[dict[str, Any]]] = [
    [{"operation": "read"}],
    [{"operation": "all"}, {"operation": "write", "permission": "deny"}],
    [{"operation": "all"}, {"operation": "alter", "permission": "deny", "principal": "User:*"}],
    [{"operation": "alter_configs", "principal": "User:*"}, {"operation": "describe"}],
    [{"operation": "delete", "pattern_type": "prefixed"}],
    [{"operation": "all"}, {"operation": "read", "permission": "deny", "host": "127.0.0.0/8"}],
    [{"operation": "all"}, {"operation": "read", "permission": "deny", "host": "10.0.0.1"}],
    [{"operation": "create", "principal": "User:bob"}],
]


@pytest.mark.parametrize("rules", ACL_CASES)
async def test_decisions_are_those_of_the_brokers(guarded, rules):
    async with administered(guarded) as (c, topic):
        for rule in rules:
            await made(c, "add-acl", **{"principal": ALICE, "resource_name": topic, **rule})
        permitted = set[str]()
        async for _ in c.client.within(30.0).tries():  # a broker applies ACLs after its response
            permitted = await operations_of_alice(guarded, topic)
            if permitted == await decided_for_alice(c, topic):
                break
        assert permitted == await decided_for_alice(c, topic)
        for principal in {rule.get("principal", ALICE) for rule in rules}:
            await made(c, "remove-acls-of", principal=principal)


async def test_what_the_brokers_show_of_their_configs_is_known(guarded):
    async with administered(guarded) as (c, topic):
        access = await brokers_access(c)
        assert access.is_standard is True
        # Apache Kafka hides configs that it does not know the type of.
        assert access.allows_without_rules in {True, None}
        assert access.super_users in {None, frozenset({"User:ANONYMOUS"})}
        decisions = await decisions_by(c, [])
        answer = decisions.decide(AccessQuestion(ALICE, "*", "read", "topic", topic))
        known = {True: AccessOutcome.ALLOWED, None: AccessOutcome.UNKNOWN}
        assert answer.outcome is known[access.allows_without_rules]


async def test_a_service_gets_and_loses_its_acls(guarded):
    async with administered(guarded) as (c, topic):
        service = f"User:{EVIL}"
        values = {"principal": service, "topic": topic}
        assert await made(c, "let-produce", **values, transactional_id="tx") == "5 ACLs added"
        assert await made(c, "let-consume", **values, group=EVIL) == "2 ACLs added"
        rule = AccessRule("topic", topic, "literal", service, "*", "read", "allow")

        async def has_rule() -> bool:
            return rule in await list_acls(c.client, RuleFilter(principal=service))

        await expect(c, has_rule, expected=True)
        plan = await prepared(c, "remove-acl", **rule._asdict())
        assert f"{service} loses read on topic {topic}" in plan.lines
        await plan.apply()
        with pytest.raises(ChangeError, match="no such ACL"):
            await prepared(c, "remove-acl", **rule._asdict())
        assert await made(c, "remove-acls-of", principal=service) == "6 ACLs removed"
        await expect(c, lambda: list_acls(c.client, RuleFilter(principal=service)), [])


async def test_users_are_created_changed_and_deleted(guarded):
    async with administered(guarded) as (c, name):
        await made(c, "set-user", name=name, password="secret")
        await made(c, "set-user", name=name, password="other", iterations=8192)

        async def users() -> list[tuple[str, int]]:
            return [(u.mechanism, u.iterations) for u in await list_users(c.client, [name])]

        await expect(c, users, [("SCRAM-SHA-512", 8192)])
        await made(c, "delete-user", name=name)
        await expect(c, users, [])


@pytest.mark.parametrize(
    ("entity", "quota"),
    [
        ({"user": EVIL}, {"producer_byte_rate": 1048576.0, "request_percentage": 12.5}),
        ({"user": None, "client-id": "app"}, {"consumer_byte_rate": 7.0}),
        ({"client-id": None}, {"controller_mutation_rate": 2.5}),
        ({"ip": "10.1.2.3"}, {"connection_creation_rate": 5.0}),
    ],
)
async def test_quotas_are_set_and_removed(guarded, entity, quota):
    async with administered(guarded) as (c, _):
        values = {kind: "<default>" if name is None else name for kind, name in entity.items()}
        await made(c, "set-quotas", **values, **{key: f"{v:.15g}" for key, v in quota.items()})
        await until_quotas(c, entity, [EntityQuotas(entity, quota)])
        await made(c, "remove-quotas", **values)
        await until_quotas(c, entity, [])


async def test_an_open_transaction_is_aborted(guarded):
    def begin(bootstrap: str, name: str) -> None:
        producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
        producer.init_transactions(30)
        producer.begin_transaction()
        producer.produce(name, b"lost")
        assert producer.flush(30) == 0

    async with administered(guarded) as (c, name):
        await asyncio.to_thread(begin, guarded[0].bootstrap, name)
        plan = await prepared(c, "abort-transaction", transactional_id=name)
        assert any("records from offset 0 on are discarded" in line for line in plan.lines)
        await plan.apply()
        assert (await describe_transaction(c.client, name)).started_ms is None


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        ("move-partition", {"partition": 0, "replicas": "1"}, "on brokers 1 already"),
        ("move-partition", {"partition": 0, "replicas": "1,9"}, "broker 9 is not registered"),
        ("spread-topic", {"replication_factor": 2}, "cannot have 2 replicas on 1 broker"),
        ("elect-preferred", {}, "every leader is the preferred one"),
        ("elect-unclean", {}, "no such partition is without a leader"),
        ("cancel-moves", {}, "no such move is in progress"),
    ],
)
async def test_moves_that_one_broker_cannot_make_are_refused(guarded, kind, values, message):
    async with administered(guarded) as (c, topic):
        with pytest.raises((ChangeError, ClientError), match=message):
            await prepared(c, kind, topic=topic, **values)
