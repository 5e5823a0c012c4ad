"""The command line of a plan makes the same change: ACLs, users, quotas, transactions."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from confluent_kafka import Producer

from tests.support.console.changes import prepared, run_line
from tests.support.console.guarded_cluster import guarded_cluster
from wirebroker.client.configs.quotas import Entity, alter_quotas, list_quotas
from wirebroker.client.security.acls import AccessRule, RuleFilter, create_acls, list_acls
from wirebroker.client.security.users import NewPassword, list_users, set_user
from wirebroker.client.transactions.transactions import list_transactions
from wirebroker.codecs.scram import SCRAM_NUMBERS

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.console.model.collector import Collector

EVIL = "-x '\"$(exit 1)`;\\"
RULE = AccessRule("topic", "orders", "literal", "User:a", "*", "read", "allow")


async def furnish(c: Collector) -> None:
    """Create what the changes remove."""
    prefixed = RULE._replace(pattern_type="prefixed")
    hostile = RULE._replace(principal=f"User:{EVIL}", resource_name=EVIL)
    cluster = RULE._replace(resource_type="cluster", resource_name="kafka-cluster")
    token = RULE._replace(resource_type="user", resource_name="User:b", operation="create_tokens")
    denied = RULE._replace(permission="deny", host="10.0.0.1")
    rules = [RULE, prefixed, hostile, cluster._replace(operation="alter"), token, denied]
    await create_acls(c.client, rules)
    for name in ("anna", EVIL):
        for number in SCRAM_NUMBERS.values():
            await set_user(c.client, name, number, NewPassword("secret", 4096))
    entities: tuple[Entity, ...] = (
        {"user": "anna"},
        {"user": None, "client-id": EVIL},
        {"ip": None},
    )
    for entity in entities:
        key = "connection_creation_rate" if "ip" in entity else "producer_byte_rate"
        await alter_quotas(c.client, entity, {key: 7.0})
    for name in ("payer", EVIL):
        await asyncio.to_thread(begin, c.settings.bootstrap, name)


def begin(bootstrap: str, name: str) -> None:
    """Leave a transaction open."""
    settings = {"bootstrap.servers": bootstrap, "transactional.id": name}
    producer = Producer({**settings, "transaction.timeout.ms": 900_000})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce("payments", b"one")
    assert producer.flush(30) == 0


async def state_of(c: Collector) -> dict[str, Any]:
    return {
        "acls": await list_acls(c.client, RuleFilter()),
        "users": await list_users(c.client),
        "quotas": await list_quotas(c.client, {}),
        "transactions": [
            (row.transactional_id, row.state) for row in await list_transactions(c.client)
        ],
    }


CASES = [
    ("add-acl", {"principal": f"User:{EVIL}", "resource_name": "orders", "operation": "write"}),
    ("add-acl", {"principal": "User:a", "resource_name": "x", "pattern_type": "prefixed"}),
    (
        "add-acl",
        {
            "principal": "User:a",
            "resource_type": "cluster",
            "operation": "idempotent_write",
            "resource_name": "kafka-cluster",
            "permission": "deny",
            "host": "10.0.0.0/8",
        },
    ),
    ("let-produce", {"principal": "User:b", "topic": "*", "transactional_id": EVIL}),
    ("let-consume", {"principal": "User:b", "topic": EVIL, "group": "g", "host": "10.0.0.1"}),
    (
        "let-consume",
        {"principal": "User:b", "topic": "o", "group": "g", "pattern_type": "prefixed"},
    ),
    ("stop-produce", {"principal": "User:b", "topic": "*", "transactional_id": EVIL}),
    (
        "stop-consume",
        {"principal": "User:b", "topic": "o", "group": "g", "pattern_type": "prefixed"},
    ),
    ("remove-acl", RULE._asdict()),
    ("remove-acl", RULE._replace(pattern_type="prefixed")._asdict()),
    ("remove-acl", {"principal": f"User:{EVIL}", "resource_name": EVIL}),
    ("remove-acl", RULE._replace(permission="deny", host="10.0.0.1")._asdict()),
    (
        "remove-acl",
        {
            "principal": "User:a",
            "resource_type": "user",
            "resource_name": "User:b",
            "operation": "create_tokens",
        },
    ),
    ("remove-acls-of", {"principal": "User:a"}),
    ("set-user", {"name": EVIL, "password": "new", "iterations": 5000}),
    ("delete-user", {"name": EVIL}),
    ("delete-user", {"name": "anna", "mechanism": "SCRAM-SHA-256"}),
    ("set-quotas", {"user": EVIL, "client-id": "<default>", "producer_byte_rate": "2"}),
    ("set-quotas", {"ip": "<default>", "connection_creation_rate": "3"}),
    ("remove-quotas", {"user": "<default>", "client-id": EVIL}),
    ("remove-quotas", {"user": "anna", "quota": "producer_byte_rate"}),
    ("abort-transaction", {"transactional_id": EVIL}),
    ("terminate-transaction", {"transactional_id": "payer"}),
]


async def states_after(c: Collector, folder: Path, *, by_command: bool) -> list[dict[str, Any]]:
    """Make the changes one after the other; return the state after each."""
    await furnish(c)
    states = [await state_of(c)]
    for kind, values in CASES:
        plan = await prepared(c, kind, **values)
        if by_command:
            password = "printf 'new\\n' | " if "password" in values else ""
            await run_line(f"{password}{plan.command}", folder)
        else:
            await plan.apply()
        states.append(await state_of(c))
    return states


async def test_command_lines_have_the_same_effects_as_the_console(tmp_path: Path) -> None:
    async with guarded_cluster(tmp_path / "console") as c:
        expected = await states_after(c, tmp_path, by_command=False)
    async with guarded_cluster(tmp_path / "commands") as c:
        states = await states_after(c, tmp_path, by_command=True)
    for (kind, values), before, wanted, found in zip(
        CASES, expected, expected[1:], states[1:], strict=False
    ):
        assert wanted != before, (kind, values)
        assert found == wanted, (kind, values)
