"""`wirebroker acl …`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

import click

from wirebroker.cli.plumbing.completed_names import GROUP_NAME, TOPIC_NAME
from wirebroker.cli.plumbing.flags import dry_run_hint, yes_flag
from wirebroker.cli.plumbing.output import tell
from wirebroker.cli.plumbing.running import ClusterFlags, cluster_flags, run_verb
from wirebroker.client.checks.dry_runs import check_cluster_rights
from wirebroker.client.security.acls import (
    ANY,
    CLUSTER_NAME,
    EVERY_HOST,
    MATCH,
    OPERATIONS,
    PERMISSIONS,
    AccessRule,
    RuleFilter,
    create_acls,
    delete_acls,
    list_acls,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Unpack

    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.kafka_client import KafkaClient

_Command = TypeVar("_Command", bound="Callable[..., int]")

_COLUMNS: Final = (
    "principal",
    "host",
    "operation",
    "permission",
    "resource_type",
    "resource_name",
    "pattern_type",
)


class _ResourceFlags(TypedDict):
    topics: tuple[str, ...]
    group_names: tuple[str, ...]
    transactional_ids: tuple[str, ...]
    users: tuple[str, ...]
    delegation_tokens: tuple[str, ...]
    of_cluster: bool


def _resource_flags(command: _Command) -> _Command:
    for option in (
        click.option("--cluster", "of_cluster", is_flag=True, help="Select the cluster itself."),
        click.option(
            "--delegation-token",
            "delegation_tokens",
            multiple=True,
            metavar="ID",
            help="Delegation token; * for all (repeatable).",
        ),
        click.option(
            "--user-principal",
            "users",
            multiple=True,
            metavar="PRINCIPAL",
            help="Owner of delegation tokens, as User:NAME; * for all (repeatable).",
        ),
        click.option(
            "--transactional-id",
            "transactional_ids",
            multiple=True,
            metavar="ID",
            help="Transactional id; * for all (repeatable).",
        ),
        click.option(
            "--group",
            "group_names",
            multiple=True,
            type=GROUP_NAME,
            metavar="GROUP",
            help="Group; * for all (repeatable).",
        ),
        click.option(
            "--topic",
            "topics",
            multiple=True,
            type=TOPIC_NAME,
            metavar="TOPIC",
            help="Topic; * for all (repeatable).",
        ),
    ):
        command = option(command)
    return command


def _resources(flags: _ResourceFlags) -> list[tuple[str, str]]:
    names_by_kind = {
        "topic": flags["topics"],
        "group": flags["group_names"],
        "transactional_id": flags["transactional_ids"],
        "user": flags["users"],
        "delegation_token": flags["delegation_tokens"],
    }
    resources = [(kind, name) for kind, names in names_by_kind.items() for name in names]
    return resources + ([("cluster", CLUSTER_NAME)] if flags["of_cluster"] else [])


@click.group()
def acl() -> None:
    """Show and change permissions (ACLs).

    A principal is User:NAME, or User:* for all users.
    """


class _CreateFlags(_ResourceFlags, ClusterFlags):
    pass


@acl.command("create")
@click.option(
    "--allow", multiple=True, metavar="PRINCIPAL", help=("Principal to allow (repeatable).")
)
@click.option(
    "--deny",
    multiple=True,
    metavar="PRINCIPAL",
    help=("Principal to deny, even if another rule allows it (repeatable)."),
)
@click.option(
    "--operation",
    "operations",
    multiple=True,
    required=True,
    type=click.Choice(
        [operation for operation in OPERATIONS if operation != ANY], case_sensitive=False
    ),
    help="Operation (repeatable).",
)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="IP",
    help=("Limit to clients from this host (repeatable)."),
)
@click.option("--prefixed", is_flag=True, help="Match all names with the given prefix.")
@_resource_flags
@cluster_flags
def create(
    *,
    allow: tuple[str, ...],
    deny: tuple[str, ...],
    operations: tuple[str, ...],
    hosts: tuple[str, ...],
    prefixed: bool,
    **flags: Unpack[_CreateFlags],
) -> int:
    """Create ACLs, one for each combination of principal, operation, host and resource."""
    access_entries = [("allow", principal) for principal in allow] + [
        ("deny", principal) for principal in deny
    ]
    if not access_entries:
        raise click.UsageError("give --allow or --deny")
    resources = _resources(flags)
    if not resources:
        raise click.UsageError("name the resources: --topic, --group, --cluster, …")
    for user in flags["users"]:
        if ":" not in user and user != "*":  # it would match no user
            raise click.UsageError(
                f"--user-principal {user!r} is not a principal: write User:{user}"
            )
    rules = [
        AccessRule(
            kind,
            name,
            "prefixed" if prefixed and kind != "cluster" else "literal",
            principal,
            host,
            operation,
            permission,
        )
        for kind, name in resources
        for permission, principal in access_entries
        for operation in operations
        for host in hosts or (EVERY_HOST,)
    ]

    async def work(client: KafkaClient, out: Output) -> None:
        await create_acls(client, rules)
        _show(out, {"created": [rule._asdict() for rule in rules]}, rules)

    return run_verb(flags, work)


class _FilterFlags(_ResourceFlags, ClusterFlags):
    principal: str | None
    operation: str
    permission: str
    host: str | None
    matching: bool


def _filter_flags(command: _Command) -> _Command:
    for option in (
        click.option(
            "--matching",
            is_flag=True,
            help="Select all rules that apply to the given name, also by prefix or *.",
        ),
        click.option("--host", metavar="IP", help="Limit to rules for this host."),
        click.option(
            "--permission",
            type=click.Choice(list(PERMISSIONS)),
            default=ANY,
            help="Limit to this permission. [default: any]",
        ),
        click.option(
            "--operation",
            type=click.Choice(list(OPERATIONS), case_sensitive=False),
            default=ANY,
            help="Limit to this operation. [default: any]",
        ),
        click.option("--principal", metavar="PRINCIPAL", help="Limit to rules for this principal."),
    ):
        command = option(command)
    return _resource_flags(command)


def _filters(flags: _FilterFlags) -> list[RuleFilter]:
    shared = RuleFilter(
        principal=flags["principal"],
        host=flags["host"],
        operation=flags["operation"],
        permission=flags["permission"],
    )
    pattern = MATCH if flags["matching"] else ANY
    resources = _resources(flags)
    return [
        shared._replace(resource_type=kind, resource_name=name, pattern_type=pattern)
        for kind, name in resources
    ] or [shared]


@acl.command("list")
@_filter_flags
@cluster_flags
def list_(**flags: Unpack[_FilterFlags]) -> int:
    """List ACLs: all, or those that match the flags."""

    async def work(client: KafkaClient, out: Output) -> None:
        rules = await _matching_rules(client, _filters(flags))
        _show(out, [rule._asdict() for rule in rules], rules)

    return run_verb(flags, work)


@acl.command("delete")
@_filter_flags
@yes_flag
@cluster_flags
def delete(*, yes: bool, **flags: Unpack[_FilterFlags]) -> int:
    """Delete the ACLs that match the flags; without --yes only list them."""
    filters = _filters(flags)
    if filters == [RuleFilter()]:
        raise click.UsageError("name the rules: give --topic, --principal or another of the flags")

    async def work(client: KafkaClient, out: Output) -> None:
        if not yes:
            await check_cluster_rights(client, "alter", "rules cannot be deleted")
            rules = await _matching_rules(client, filters)
            _show(out, {"would_delete": [rule._asdict() for rule in rules]}, rules)
            tell(dry_run_hint("would be deleted"))
            return
        rules = [rule for rule_filter in filters for rule in await delete_acls(client, rule_filter)]
        _show(out, {"deleted": [rule._asdict() for rule in rules]}, rules)

    return run_verb(flags, work)


async def _matching_rules(client: KafkaClient, filters: list[RuleFilter]) -> list[AccessRule]:
    return sorted(
        {rule for rule_filter in filters for rule in await list_acls(client, rule_filter)}
    )


def _show(out: Output, data: Any, rules: list[AccessRule]) -> None:
    out.show(data, out.table([rule._asdict() for rule in rules], _COLUMNS))
