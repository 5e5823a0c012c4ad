"""Changes of ACLs: one ACL, those of a producer or consumer, all of a principal."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import did_you_mean
from wirebroker.client.security.acls import (
    CONSUMER_OPERATIONS,
    PRODUCER_OPERATIONS,
    RuleFilter,
    create_acls,
    delete_acls,
    list_acls,
)
from wirebroker.codecs.acls import WILDCARD
from wirebroker.codecs.errors import ErrorCode
from wirebroker.console.access.acl_decisions import decisions_by
from wirebroker.console.access.acl_effects import effects_of, matching_names
from wirebroker.console.access.brokers_access import brokers_access
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    PreparedChange,
)
from wirebroker.console.changes.command_line import kafka_line, verb_line
from wirebroker.console.changes.kinds.acl_fields import (
    HOST,
    PATTERN,
    PRINCIPAL,
    RULE_FIELDS,
    TOPIC,
    check_pattern,
    client_flags,
    client_rules,
    principal_of,
    rule_flags,
    rule_of_values,
    rule_text,
)

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from wirebroker.client.security.acls import AccessRule
    from wirebroker.console.access.acl_effects import AclEffects
    from wirebroker.console.model.collector import Collector

_NO_TOPIC: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}
)


def _tool_line(collector: Collector, *flags: str) -> str:
    return kafka_line(collector.settings, "kafka-acls", flags)


async def _effects(
    collector: Collector,
    existing: Collection[AccessRule],
    *,
    added: Sequence[AccessRule] = (),
    removed: Sequence[AccessRule] = (),
) -> AclEffects:
    """Compare in a thread what users may do before and after a change."""
    decisions = await decisions_by(collector, existing)
    compare = partial(effects_of, added=added, removed=removed)
    effects = await in_thread(Work.LISTS, compare, decisions, collector.snapshot, existing)
    if (await brokers_access(collector)).is_standard is False:
        warning = (
            "the brokers use another authorizer (authorizer.class.name), which may decide otherwise"
        )
        return effects._replace(warnings=(*effects.warnings, warning), is_complete=False)
    return effects


async def _additions(
    collector: Collector, rules: Sequence[AccessRule], summary: str, command: str
) -> PreparedChange:
    """Return the plan that adds ACLs, without those that exist."""
    existing = set(await list_acls(collector.client, RuleFilter()))
    new = [rule for rule in rules if rule not in existing]
    if not new:
        raise ChangeError("these ACLs exist already")
    effects = await _effects(collector, existing, added=new)
    lines = [f"+ {rule_text(rule)}" for rule in new]
    lines += [f"exists already: {rule_text(rule)}" for rule in rules if rule in existing]
    warnings = list(effects.warnings)
    is_without_effect = not (effects.gains or effects.losses or warnings)
    if is_without_effect and not effects.is_complete:
        warnings.append("it is not known who gains or loses access: configs that decide are hidden")
    elif is_without_effect:
        warnings.append(
            "no user gains or loses anything now: other ACLs or super.users already decide"
        )
    warnings += await _missing_topics(new, collector)

    async def apply() -> str:
        await create_acls(collector.client, new)
        return f"{counted(len(new), 'ACL')} added"

    return PreparedChange(
        summary,
        (*lines, *effects.gains, *effects.losses),
        command,
        apply,
        tuple(warnings),
    )


async def _missing_topics(rules: Collection[AccessRule], collector: Collector) -> list[str]:
    """Return a warning for each name without a topic, which may be misspelled."""
    warnings: dict[str, None] = {}
    snapshot = collector.snapshot
    literal = {
        rule.resource_name
        for rule in rules
        if rule.resource_type == "topic" and rule.pattern_type == "literal"
    }
    missing = await _unknown(literal - {WILDCARD} - snapshot.topics.keys(), collector)
    for rule in rules:
        name = rule.resource_name
        if rule.resource_type != "topic" or name == WILDCARD:
            continue
        if rule.pattern_type == "literal" and name in missing:
            warnings[f"there is no topic {name} yet{did_you_mean(name, snapshot.topics)}"] = None
        elif rule.pattern_type == "prefixed" and not matching_names(rule, snapshot):
            warnings[f"no topic begins with {name} yet"] = None
    return list(warnings)


async def _unknown(names: Collection[str], collector: Collector) -> set[str]:
    """Return the names without a topic; a topic may be newer than the collector's snapshot."""
    if not names:
        return set()
    answer = await collector.client.metadata(sorted(names))
    return {topic.name for topic in answer.topics if topic.error_code in _NO_TOPIC}


async def _add(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    rule = rule_of_values(values)
    check_pattern(rule.resource_name, rule.pattern_type, "resource_name")
    return await _additions(
        collector,
        [rule],
        f"Add an ACL: {rule_text(rule)}",
        _tool_line(collector, "--add", *rule_flags(rule)),
    )


async def _let_produce(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    names = {"topic": values["topic"], "transactional_id": values["transactional_id"]}
    rules = client_rules(values, PRODUCER_OPERATIONS, names)
    return await _additions(
        collector,
        rules,
        f"Let {values['principal']} write to topic {values['topic']}",
        _tool_line(collector, "--add", "--producer", *client_flags(values, names)),
    )


async def _let_consume(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    names = {"topic": values["topic"], "group": values["group"]}
    rules = client_rules(values, CONSUMER_OPERATIONS, names)
    return await _additions(
        collector,
        rules,
        f"Let {values['principal']} read topic {values['topic']} in group {values['group']}",
        _tool_line(collector, "--add", "--consumer", *client_flags(values, names)),
    )


async def _removal(
    collector: Collector, rule_filter: RuleFilter, summary: str, command: str
) -> PreparedChange:
    """Return the plan that removes the ACLs that a filter matches."""
    existing = await list_acls(collector.client, RuleFilter())
    matching = set(await list_acls(collector.client, rule_filter))
    removed = [rule for rule in existing if rule in matching]
    if not removed:
        raise ChangeError("there is no such ACL: it may have been removed meanwhile")
    effects = await _effects(collector, existing, removed=removed)

    async def apply() -> str:
        deleted = await delete_acls(collector.client, rule_filter)
        return f"{counted(len(deleted), 'ACL')} removed"

    return PreparedChange(
        summary,
        (*(f"- {rule_text(rule)}" for rule in removed), *effects.losses, *effects.gains),
        command,
        apply,
        effects.warnings,
    )


async def _remove(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    rule = rule_of_values(values)
    return await _removal(
        collector,
        RuleFilter(*rule),
        f"Remove an ACL: {rule_text(rule)}",
        _tool_line(collector, "--remove", "--force", *rule_flags(rule)),
    )


async def _remove_all(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    principal = principal_of(values)
    return await _removal(
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


KINDS: Final[tuple[ChangeKind, ...]] = (
    _kind("add-acl", "Add an ACL", RULE_FIELDS, _add),
    _kind("remove-acl", "Remove an ACL", RULE_FIELDS, _remove),
    _kind(
        "let-produce",
        "Let a service produce",
        (
            PRINCIPAL,
            TOPIC,
            Field(
                "transactional_id",
                "Transactional id",
                help="For producers with transactions; * for all.",
                is_required=False,
            ),
            PATTERN,
            HOST,
        ),
        _let_produce,
    ),
    _kind(
        "let-consume",
        "Let a service consume",
        (
            PRINCIPAL,
            TOPIC,
            Field("group", "Group", help="Its consumer group; * for all groups."),
            PATTERN,
            HOST,
        ),
        _let_consume,
    ),
    _kind("remove-acls-of", "Remove all ACLs of a principal", (PRINCIPAL,), _remove_all),
)
