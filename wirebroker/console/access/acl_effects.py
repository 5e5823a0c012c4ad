"""Who gains and who loses what by a change of ACLs.

Decisions before and after the change are compared, for the principal of each changed ACL and for
users without ACLs, on the existing resources that its pattern matches.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.text import counted, few_of
from wirebroker.client.security.acls import OPERATIONS, RESOURCE_TYPES, AccessRule
from wirebroker.codecs.acls import EVERYBODY, SUPPORTED_OPERATIONS, WILDCARD, Resource
from wirebroker.console.access.acl_decisions import AccessOutcome, AccessQuestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from wirebroker.console.access.acl_decisions import AclDecisions
    from wirebroker.console.model.snapshot import ClusterSnapshot

# Resources of a pattern that are compared; the effects on others are alike. With eight operations
# and two users this takes some 10 ms.
MOST_NAMES: Final = 50
_MOST_SHOWN: Final = 5
_WORDS: Final = {number: word for word, number in OPERATIONS.items()}


class AclEffects(NamedTuple):
    """What a change does, in sentences.

    Attributes:
        gains, losses: For the principals of the changed ACLs.
        warnings: For everyone else.
    """

    gains: tuple[str, ...]
    losses: tuple[str, ...]
    warnings: tuple[str, ...]


class _Target(NamedTuple):
    """Whose access to what is compared."""

    principal: str
    host: str
    resource_type: str


def matching_names(rule: AccessRule, snapshot: ClusterSnapshot) -> list[str]:
    """Return the resources that an ACL concerns: its name, or existing ones of its pattern."""
    is_wildcard = rule.pattern_type == "literal" and rule.resource_name == WILDCARD
    if rule.pattern_type == "literal" and not is_wildcard:
        return [rule.resource_name]
    existing: Iterable[str] = ()
    if rule.resource_type == "topic":
        existing = snapshot.topics
    elif rule.resource_type == "group":
        existing = snapshot.groups
    prefix = "" if is_wildcard else rule.resource_name
    return [name for name in existing if name.startswith(prefix)]


def effects_of(
    decisions: AclDecisions,
    snapshot: ClusterSnapshot,
    *,
    added: Sequence[AccessRule] = (),
    removed: Sequence[AccessRule] = (),
) -> AclEffects:
    """Return what adding and removing ACLs changes."""
    names: dict[_Target, dict[str, None]] = {}
    for rule in (*added, *removed):
        target = _Target(rule.principal, rule.host, rule.resource_type)
        matching = matching_names(rule, snapshot)[:MOST_NAMES]
        # With no such resource yet, the pattern itself names future ones.
        names.setdefault(target, {}).update(dict.fromkeys(matching or [rule.resource_name]))
    others = {_Target(EVERYBODY, WILDCARD, target.resource_type) for target in names} - {*names}
    concerned: dict[_Target, list[str]] = {
        target: list(found)[:MOST_NAMES] for target, found in names.items()
    }
    for other in sorted(others):
        of_type = [found for target, found in names.items() if target[2] == other.resource_type]
        merged = dict.fromkeys(name for found in of_type for name in found)
        concerned[other] = list(merged)[:MOST_NAMES]
    before = _outcomes(decisions, concerned)
    with decisions.changed(added, removed):
        after = _outcomes(decisions, concerned)
    return _effects(before, after, others)


_Outcomes = dict[tuple[_Target, str, str], AccessOutcome]


def _outcomes(decisions: AclDecisions, concerned: dict[_Target, list[str]]) -> _Outcomes:
    return {
        (target, operation, name): decisions.decide(
            AccessQuestion(target.principal, target.host, operation, target.resource_type, name)
        ).outcome
        for target, names in concerned.items()
        for operation in operations_on(target.resource_type)
        for name in names
    }


def operations_on(resource_type: str) -> list[str]:
    """Return the operations on a type of resource, in the words of ACLs."""
    supported = SUPPORTED_OPERATIONS[Resource(RESOURCE_TYPES[resource_type])]
    return [_WORDS[operation] for operation in supported]


def _effects(before: _Outcomes, after: _Outcomes, others: set[_Target]) -> AclEffects:
    gains, losses = _newly_allowed(before, after), _newly_allowed(after, before)
    warnings = [
        f"all other users {verb} {text}"
        for verb, changes in (("gain", gains), ("lose", losses))
        for target, text in _sentences(changes)
        if target in others
    ]
    unknown = AccessOutcome.UNKNOWN
    if any((before[key] is unknown) is not (after[key] is unknown) for key in before):
        warnings.append(
            "if the brokers have allow.everyone.if.no.acl.found=true, this changes the access of"
            " all other users too: it applies only to resources without ACLs"
        )
    return AclEffects(
        tuple(
            f"{_who(target)} gains {text}"
            for target, text in _sentences(gains)
            if target not in others
        ),
        tuple(
            f"{_who(target)} loses {text}"
            for target, text in _sentences(losses)
            if target not in others
        ),
        tuple(warnings),
    )


def _newly_allowed(before: _Outcomes, after: _Outcomes) -> list[tuple[_Target, str, str]]:
    allowed = AccessOutcome.ALLOWED
    return [key for key in before if after[key] is allowed and before[key] is not allowed]


def _who(target: _Target) -> str:
    host = "" if target.host == WILDCARD else f" from {target.host}"
    return ("every user" if target.principal == EVERYBODY else target.principal) + host


def _sentences(changes: list[tuple[_Target, str, str]]) -> list[tuple[_Target, str]]:
    """Return `read, describe on topic orders`: operations with the same resources together."""
    names: dict[tuple[_Target, str], list[str]] = {}
    for target, operation, name in changes:
        names.setdefault((target, operation), []).append(name)
    operations: dict[tuple[_Target, tuple[str, ...]], list[str]] = {}
    for (target, operation), found in names.items():
        operations.setdefault((target, tuple(found)), []).append(operation)
    return [
        (target, f"{', '.join(words)} on {_resources(target.resource_type, found)}")
        for (target, found), words in operations.items()
    ]


def _resources(resource_type: str, names: tuple[str, ...]) -> str:
    word = resource_type.replace("_", " ")
    if len(names) == 1:
        return f"{word} {names[0]}"
    count = f"at least {MOST_NAMES} {word}s" if len(names) >= MOST_NAMES else None
    return f"{count or counted(len(names), word)}: {few_of(names, _MOST_SHOWN)}"
