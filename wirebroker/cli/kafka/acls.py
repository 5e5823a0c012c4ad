"""`wirebroker kafka-acls`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.connection import ConnectionFlags, connection_flags, run_tool
from wirebroker.cli.kafka.plumbing.script import ScriptCommand, version_flag
from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.client.errors import ClientError
from wirebroker.client.security.acls import (
    ANY,
    CLUSTER_NAME,
    CONSUMER_OPERATIONS,
    EVERY_HOST,
    MATCH,
    OPERATIONS,
    PATTERN_TYPES,
    PRODUCER_OPERATIONS,
    AccessRule,
    RuleFilter,
    create_acls,
    delete_acls,
    list_acls,
)

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient


class _AclFlags(ConnectionFlags):
    topics: tuple[str, ...]
    groups: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    delegation_tokens: tuple[str, ...]
    users: tuple[str, ...]
    cluster: bool
    idempotent: bool
    pattern_type: str
    operations: tuple[str, ...]
    allowed: tuple[str, ...]
    denied: tuple[str, ...]
    allowed_hosts: tuple[str, ...]
    denied_hosts: tuple[str, ...]
    listed: tuple[str, ...]
    producer: bool
    consumer: bool


@click.command(cls=ScriptCommand)
@click.option("--list", "list_", is_flag=True, help="List ACLs.")
@click.option("--add", is_flag=True, help="Add ACLs.")
@click.option("--remove", is_flag=True, help="Remove ACLs.")
@click.option(
    "--topic", "topics", multiple=True, type=TOPIC_NAME, metavar="TOPIC", help="Topic; * for all."
)
@click.option(
    "--group", "groups", multiple=True, type=GROUP_NAME, metavar="GROUP", help="Group; * for all."
)
@click.option(
    "--transactional-id", "transactional_ids", multiple=True, metavar="ID", help="Transactional id."
)
@click.option(
    "--delegation-token", "delegation_tokens", multiple=True, metavar="ID", help="Delegation token."
)
@click.option("--user-principal", "users", multiple=True, metavar="USER", help="User.")
@click.option("--cluster", is_flag=True, help="The cluster.")
@click.option("--idempotent", is_flag=True, help="With --producer: allow idempotent writes.")
@click.option(
    "--resource-pattern-type",
    "pattern_type",
    type=click.Choice(list(PATTERN_TYPES), case_sensitive=False),
    default="literal",
    help="Pattern type of names: literal or prefixed; to list and remove also any and match.",
)
@click.option(
    "--operation", "operations", multiple=True, metavar="NAME", help="Operation: Read, Write, …"
)
@click.option(
    "--allow-principal", "allowed", multiple=True, metavar="PRINCIPAL", help="Principal to allow."
)
@click.option(
    "--deny-principal", "denied", multiple=True, metavar="PRINCIPAL", help="Principal to deny."
)
@click.option("--allow-host", "allowed_hosts", multiple=True, metavar="IP", help="Host to allow.")
@click.option("--deny-host", "denied_hosts", multiple=True, metavar="IP", help="Host to deny.")
@click.option(
    "--principal",
    "listed",
    multiple=True,
    metavar="PRINCIPAL",
    help="List only ACLs of this principal.",
)
@click.option("--producer", is_flag=True, help="Add or remove the ACLs of a producer.")
@click.option("--consumer", is_flag=True, help="Add or remove the ACLs of a consumer.")
@click.option("--force", is_flag=True, help="Do not ask for confirmation.")
@connection_flags()
@version_flag
def kafka_acls(
    *, list_: bool, add: bool, remove: bool, force: bool, **flags: Unpack[_AclFlags]
) -> int:
    """List, add and remove ACLs, as kafka-acls.sh."""
    if [list_, add, remove].count(True) != 1:
        raise click.UsageError("give one of --list, --add and --remove")
    _check(flags, adds=add)
    for principal in (*flags["allowed"], *flags["denied"], *flags["listed"]):
        if ":" not in principal:
            click.echo(
                "Error while executing ACL command: expected a string in format"
                f" principalType:principalName but got {principal}"
            )
            return 1
    rules = _requested_rules(flags)

    async def work(client: KafkaClient, out: Output) -> None:
        if add:
            await _add(client, out, rules)
        elif remove:
            await _remove(client, out, rules, flags, asks=not force)
        else:
            await _list(client, out, flags)

    return run_tool(
        flags,
        work,
        failed=lambda message: f"Error while executing ACL command: {message}",
        to_stderr=False,
    )


def _check(flags: _AclFlags, *, adds: bool) -> None:
    names_one = bool(_resources(flags))
    if adds and not (flags["allowed"] or flags["denied"]):
        raise click.UsageError("give --allow-principal or --deny-principal")
    if adds and not names_one:
        raise click.UsageError("name a resource: --topic, --group, --cluster, …")
    if adds and flags["pattern_type"] in {ANY, MATCH}:
        raise click.UsageError(f"ACLs can't be added as {flags['pattern_type']}")
    if flags["producer"] and not flags["topics"]:
        raise click.UsageError("--producer needs --topic")
    if flags["idempotent"] and not flags["producer"]:
        raise click.UsageError("--idempotent needs --producer")
    if flags["consumer"] and not (flags["topics"] and flags["groups"]):
        raise click.UsageError("--consumer needs --topic and --group")
    for operation in flags["operations"]:
        if _operation(operation) not in OPERATIONS:
            raise click.UsageError(f"there is no operation {operation}")


def _operation(text: str) -> str:
    lower = text.lower().replace("_", "")
    return next(
        (operation for operation in OPERATIONS if operation.replace("_", "") == lower), lower
    )


def _resources(flags: _AclFlags) -> list[tuple[str, str]]:
    names_by_kind = {
        "topic": flags["topics"],
        "group": flags["groups"],
        "transactional_id": flags["transactional_ids"],
        "delegation_token": flags["delegation_tokens"],
        "user": flags["users"],
    }
    resources = [(kind, name) for kind, names in names_by_kind.items() for name in names]
    return resources + ([("cluster", CLUSTER_NAME)] if flags["cluster"] else [])


def _operations_on(kind: str, flags: _AclFlags) -> list[str]:
    operations: list[str] = []
    if flags["producer"]:
        operations += PRODUCER_OPERATIONS.get(kind, ())
    if flags["idempotent"] and kind == "cluster":
        operations.append("idempotent_write")
    if flags["consumer"]:
        operations += CONSUMER_OPERATIONS.get(kind, ())
    if not (flags["producer"] or flags["consumer"]):
        operations += [_operation(operation) for operation in flags["operations"]] or ["all"]
    return list(dict.fromkeys(operations))


def _requested_rules(flags: _AclFlags) -> list[AccessRule]:
    access_entries = [
        (permission, principal, host)
        for permission, principals, hosts in (
            ("allow", flags["allowed"], flags["allowed_hosts"]),
            ("deny", flags["denied"], flags["denied_hosts"]),
        )
        for principal in principals
        for host in hosts or (EVERY_HOST,)
    ]
    resources = _resources(flags)
    if flags["idempotent"] and ("cluster", CLUSTER_NAME) not in resources:
        resources.append(("cluster", CLUSTER_NAME))
    return [
        AccessRule(kind, name, flags["pattern_type"], principal, host, operation, permission)
        for kind, name in resources
        for permission, principal, host in access_entries
        for operation in _operations_on(kind, flags)
    ]


async def _add(client: KafkaClient, out: Output, rules: list[AccessRule]) -> None:
    for head, resource_rules in _by_resource(rules).items():
        out.line(f"Adding ACLs for resource `{head}`: ")
        _print(out, resource_rules)
    await create_acls(client, rules)


async def _list(client: KafkaClient, out: Output, flags: _AclFlags) -> None:
    resources: list[tuple[str, str | None]] = [*_resources(flags)]
    all_rules = {
        rule
        for kind, name in resources or [(ANY, None)]
        for rule in await list_acls(
            client,
            RuleFilter(
                resource_type=kind,
                resource_name=name,
                pattern_type=ANY if name is None else flags["pattern_type"],
            ),
        )
    }
    for principal in flags["listed"] or (None,):
        if principal is not None:
            out.line(f"ACLs for principal `{principal}`")
        rules = sorted(rule for rule in all_rules if principal in {None, rule.principal})
        for head, resource_rules in _by_resource(rules).items():
            out.line(f"Current ACLs for resource `{head}`: ")
            _print(out, resource_rules)


async def _remove(
    client: KafkaClient,
    out: Output,
    rules: list[AccessRule],
    flags: _AclFlags,
    *,
    asks: bool,
) -> None:
    resources = _resources(flags)
    if not resources:
        raise ClientError("name a resource: --topic, --group, --cluster, …")
    filters = [RuleFilter(*rule) for rule in rules] or [
        RuleFilter(resource_type=kind, resource_name=name, pattern_type=flags["pattern_type"])
        for kind, name in resources
    ]
    if asks:
        for head, resource_rules in _by_resource(rules).items():
            out.line(f"Are you sure you want to remove ACLs for `{head}`:")
            _print(out, resource_rules)
        if not click.confirm("Remove them", default=False):
            return
    for rule_filter in filters:
        await delete_acls(client, rule_filter)


def _by_resource(rules: Iterable[AccessRule]) -> dict[str, list[AccessRule]]:
    by_resource: dict[str, list[AccessRule]] = {}
    for rule in rules:
        pattern = rule.pattern_type.upper()
        kind = rule.resource_type.upper()
        name = f"name={rule.resource_name}, patternType={pattern}"
        head = f"ResourcePattern(resourceType={kind}, {name})"
        by_resource.setdefault(head, []).append(rule)
    return by_resource


def _print(out: Output, rules: list[AccessRule]) -> None:
    for rule in rules:
        out.line(
            f"\t(principal={rule.principal}, host={rule.host},"
            f" operation={rule.operation.upper()}, permissionType={rule.permission.upper()})"
        )
    out.line("")
