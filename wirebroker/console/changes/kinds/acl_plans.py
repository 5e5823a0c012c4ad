"""Plans that add or remove ACLs, with what users gain and lose."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted, few_of
from wirebroker.base.threads import Work, in_thread
from wirebroker.client.errors import did_you_mean
from wirebroker.client.security.acls import (
    RuleFilter,
    create_acls,
    delete_acls,
    delete_all_acls,
    list_acls,
)
from wirebroker.codecs.acls import WILDCARD
from wirebroker.codecs.errors import ErrorCode
from wirebroker.console.access.acl_decisions import AccessOutcome, AccessQuestion, decisions_by
from wirebroker.console.access.acl_effects import MOST_NAMES, effects_of, matching_names
from wirebroker.console.access.acl_overlap import address_of
from wirebroker.console.access.brokers_access import brokers_access
from wirebroker.console.changes.change import ChangeError, PreparedChange
from wirebroker.console.changes.kinds.acl_fields import rule_text

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wirebroker.client.security.acls import AccessRule
    from wirebroker.console.access.acl_decisions import AclDecisions
    from wirebroker.console.access.acl_effects import AclEffects
    from wirebroker.console.model.collector import Collector

_NO_TOPIC: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.INVALID_TOPIC_EXCEPTION}
)
_MOST_SHOWN: Final = 5


async def _effects(
    collector: Collector,
    decisions: AclDecisions,
    existing: Collection[AccessRule],
    *,
    added: Sequence[AccessRule] = (),
    removed: Sequence[AccessRule] = (),
) -> AclEffects:
    """Compare in a thread what users may do before and after a change."""
    compare = partial(effects_of, added=added, removed=removed)
    effects = await in_thread(Work.LISTS, compare, decisions, collector.snapshot, existing)
    if (await brokers_access(collector)).is_standard is False:
        warning = (
            "the brokers use another authorizer (authorizer.class.name), which may decide otherwise"
        )
        return effects._replace(warnings=(*effects.warnings, warning), is_complete=False)
    return effects


async def additions(
    collector: Collector, rules: Sequence[AccessRule], summary: str, command: str
) -> PreparedChange:
    """Return the plan that adds ACLs, without those that exist."""
    existing = set(await list_acls(collector.client, RuleFilter()))
    new = [rule for rule in rules if rule not in existing]
    if not new:
        raise ChangeError("these ACLs exist already")
    decisions = await decisions_by(collector, existing)
    effects = await _effects(collector, decisions, existing, added=new)
    lines = [f"+ {rule_text(rule)}" for rule in new]
    lines += [f"exists already: {rule_text(rule)}" for rule in rules if rule in existing]
    warnings = _warnings_of(effects)
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


def _warnings_of(effects: AclEffects) -> list[str]:
    """Return the warnings of effects, and one if a change has no effect."""
    warnings = list(effects.warnings)
    is_without_effect = not (effects.gains or effects.losses or warnings)
    if is_without_effect and not effects.is_complete:
        warnings.append("it is not known who gains or loses access: configs that decide are hidden")
    elif is_without_effect:
        warnings.append(
            "no user gains or loses anything now: other ACLs or super.users already decide"
        )
    return warnings


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


async def removal(
    collector: Collector, rule_filter: RuleFilter, summary: str, command: str
) -> PreparedChange:
    """Return the plan that removes the ACLs that a filter matches."""
    existing = await list_acls(collector.client, RuleFilter())
    matching = set(await list_acls(collector.client, rule_filter))
    removed = [rule for rule in existing if rule in matching]
    if not removed:
        raise ChangeError("there is no such ACL: it may have been removed meanwhile")
    decisions = await decisions_by(collector, existing)
    effects = await _effects(collector, decisions, existing, removed=removed)

    async def apply() -> str:
        deleted = await delete_acls(collector.client, rule_filter)
        return f"{counted(len(deleted), 'ACL')} removed"

    return PreparedChange(
        summary,
        (*(f"- {rule_text(rule)}" for rule in removed), *effects.losses, *effects.gains),
        command,
        apply,
        tuple(_warnings_of(effects)),
    )


async def client_removal(
    collector: Collector, rules: Sequence[AccessRule], summary: str, command: str
) -> PreparedChange:
    """Return the plan that removes the ACLs of a producer or consumer, those that exist."""
    existing = set(await list_acls(collector.client, RuleFilter()))
    removed = [rule for rule in rules if rule in existing]
    if not removed:
        raise ChangeError(
            f"{rules[0].principal} has none of these ACLs. If it still has access, other ACLs allow"
            " it: see the ACLs page"
        )
    decisions = await decisions_by(collector, existing)
    effects = await _effects(collector, decisions, existing, removed=removed)
    lines = [f"- {rule_text(rule)}" for rule in removed]
    lines += [f"does not exist: {rule_text(rule)}" for rule in rules if rule not in existing]

    async def apply() -> str:
        count = await delete_all_acls(collector.client, removed)
        return f"{counted(count, 'ACL')} removed"

    warnings = _warnings_of(effects) + _access_of_client(collector, decisions, rules, removed)
    return PreparedChange(
        summary, (*lines, *effects.losses, *effects.gains), command, apply, tuple(warnings)
    )


def _access_of_client(
    collector: Collector,
    decisions: AclDecisions,
    rules: Sequence[AccessRule],
    removed: Sequence[AccessRule],
) -> list[str]:
    """Return a warning if a client keeps its access to topics, or loses them in all groups."""
    rule = next(
        rule
        for rule in rules
        if rule.resource_type == "topic" and rule.operation in {"read", "write"}
    )
    names = matching_names(rule, collector.snapshot)[:MOST_NAMES] or [rule.resource_name]
    before = _allowed_names(decisions, rule, names)
    with decisions.changed((), removed):
        after = _allowed_names(decisions, rule, names)
    verb = "read" if rule.operation == "read" else "write to"
    warnings: list[str] = []
    if after:
        warnings.append(
            f"{rule.principal} can still {verb} {_topics(after)}: another ACL, super.users or"
            " allow.everyone.if.no.acl.found allows it"
        )
    lost = [name for name in before if name not in after]
    if lost and rule.operation == "read":
        warnings.append(f"{rule.principal} can no longer read {_topics(lost)} in any group")
    return warnings


def _allowed_names(decisions: AclDecisions, rule: AccessRule, names: Sequence[str]) -> list[str]:
    """Return the topics on which the principal of an ACL may do its operation."""
    host = address_of(rule.host)
    return [
        name
        for name in names
        if decisions.decide(
            AccessQuestion(rule.principal, host, rule.operation, "topic", name)
        ).outcome
        is AccessOutcome.ALLOWED
    ]


def _topics(names: Sequence[str]) -> str:
    return f"{'topic' if len(names) == 1 else 'topics'} {few_of(names, _MOST_SHOWN)}"
