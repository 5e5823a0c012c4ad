"""Changes of ACLs: one ACL, those of a producer or consumer, all of a principal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.client.security.acls import CONSUMER_OPERATIONS, PRODUCER_OPERATIONS, RuleFilter
from wirebroker.console.changes.change import ChangeKind, ConsoleRole, Field, PreparedChange
from wirebroker.console.changes.command_line import kafka_line, verb_line
from wirebroker.console.changes.kinds.acl_fields import (
    CONSUMER_FIELDS,
    PRINCIPAL,
    PRODUCER_FIELDS,
    RULE_FIELDS,
    check_pattern,
    client_flags,
    client_rules,
    names_text,
    principal_of,
    rule_flags,
    rule_of_values,
    rule_text,
)
from wirebroker.console.changes.kinds.acl_plans import additions, client_removal, removal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence

    from wirebroker.console.model.collector import Collector


def _tool_line(collector: Collector, *flags: str) -> str:
    return kafka_line(collector.settings, "kafka-acls", flags)


async def _add(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    rule = rule_of_values(values)
    check_pattern(rule.resource_name, rule.pattern_type, "resource_name")
    return await additions(
        collector,
        [rule],
        f"Add an ACL: {rule_text(rule)}",
        _tool_line(collector, "--add", *rule_flags(rule)),
    )


def _resources(values: Mapping[str, str], kinds: Iterable[str]) -> str:
    """Return the resources of a client, such as `topic orders and group billing`."""
    pattern = values["pattern_type"]
    return " and ".join(names_text(kind, values[kind], pattern) for kind in kinds if values[kind])


async def _let_produce(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    names = {"topic": values["topic"], "transactional_id": values["transactional_id"]}
    rules = client_rules(values, PRODUCER_OPERATIONS, names)
    return await additions(
        collector,
        rules,
        f"Let {values['principal']} write to {_resources(values, ('topic',))}",
        _tool_line(collector, "--add", "--producer", *client_flags(values, names)),
    )


async def _let_consume(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    names = {"topic": values["topic"], "group": values["group"]}
    rules = client_rules(values, CONSUMER_OPERATIONS, names)
    return await additions(
        collector,
        rules,
        f"Let {values['principal']} read {_resources(values, ('topic',))} in"
        f" {_resources(values, ('group',))}",
        _tool_line(collector, "--add", "--consumer", *client_flags(values, names)),
    )


async def _remove_client(
    client: str,
    operations: Mapping[str, Sequence[str]],
    fields: Sequence[str],
    collector: Collector,
    values: Mapping[str, str],
) -> PreparedChange:
    """Return the plan that removes the ACLs of a client, `producer` or `consumer`."""
    names = {field: values[field] for field in fields}
    return await client_removal(
        collector,
        client_rules(values, operations, names),
        f"Remove the {client} ACLs of {values['principal']} on {_resources(values, names)}",
        _tool_line(collector, "--remove", "--force", f"--{client}", *client_flags(values, names)),
    )


async def _remove(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    rule = rule_of_values(values)
    return await removal(
        collector,
        RuleFilter(*rule),
        f"Remove an ACL: {rule_text(rule)}",
        _tool_line(collector, "--remove", "--force", *rule_flags(rule)),
    )


async def _remove_all(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    principal = principal_of(values)
    return await removal(
        collector,
        RuleFilter(principal=principal),
        f"Remove all ACLs of {principal}",
        verb_line(collector.settings, "acl delete", ("--principal", principal, "--yes")),
    )


def _kind(
    name: str,
    title: str,
    fields: tuple[Field, ...],
    prepare: Callable[[Collector, Mapping[str, str]], Awaitable[PreparedChange]],
) -> ChangeKind:
    return ChangeKind(name, title, ConsoleRole.ADMIN, fields, "principal", prepare, "acls")


_remove_producer = partial(
    _remove_client, "producer", PRODUCER_OPERATIONS, ("topic", "transactional_id")
)
_remove_consumer = partial(_remove_client, "consumer", CONSUMER_OPERATIONS, ("topic", "group"))

KINDS: Final[tuple[ChangeKind, ...]] = (
    _kind("add-acl", "Add an ACL", RULE_FIELDS, _add),
    _kind("remove-acl", "Remove an ACL", RULE_FIELDS, _remove),
    _kind("let-produce", "Let a service produce", PRODUCER_FIELDS, _let_produce),
    _kind("let-consume", "Let a service consume", CONSUMER_FIELDS, _let_consume),
    _kind("stop-produce", "Remove a producer's ACLs", PRODUCER_FIELDS, _remove_producer),
    _kind("stop-consume", "Remove a consumer's ACLs", CONSUMER_FIELDS, _remove_consumer),
    _kind("remove-acls-of", "Remove all ACLs of a principal", (PRINCIPAL,), _remove_all),
)
