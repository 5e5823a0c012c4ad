"""Who gains and who loses what by a change of ACLs.

Decisions before and after the change are compared on the existing resources that the pattern of
each changed ACL matches: for its principal, for the principals and hosts of other ACLs that it
overlaps, and for users without ACLs.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import islice
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.text import counted, few_of
from wirebroker.client.security.acls import OPERATIONS, RESOURCE_TYPES, AccessRule
from wirebroker.codecs.acls import EVERYBODY, SUPPORTED_OPERATIONS, WILDCARD, Resource
from wirebroker.console.access.acl_decisions import AccessOutcome, AccessQuestion
from wirebroker.console.access.acl_overlap import (
    address_of,
    common_host,
    common_name,
    common_principal,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Sequence

    from wirebroker.console.access.acl_decisions import AclDecisions
    from wirebroker.console.model.snapshot import ClusterSnapshot

# Resources of a pattern that are compared; the effects on others are alike. With eight operations
# and two users this takes some 10 ms.
MOST_NAMES: Final = 50
# Other principals and hosts that are compared, their resources, and the changed ACLs whose
# overlaps are looked for: with 10,000 ACLs this takes a thread some 0.5 s.
MOST_OTHERS: Final = 50
_MOST_NAMES_OF_OTHERS: Final = 10
_MOST_CHANGED: Final = 50
# Principals and hosts of changed ACLs to compare, in addition to those with overlaps.
_MOST_OWN: Final = 50
_MOST_SHOWN: Final = 5
_WORDS: Final = {number: word for word, number in OPERATIONS.items()}


class AclEffects(NamedTuple):
    """What a change does, in sentences.

    Attributes:
        gains, losses: For principals that ACLs name.
        warnings: For everyone else.
        is_complete: Whether everything was compared, and every outcome is known.
    """

    gains: tuple[str, ...]
    losses: tuple[str, ...]
    warnings: tuple[str, ...]
    is_complete: bool


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


class _ExistingNames:
    """The existing resources by type, sorted, so that an ACL is not compared with all of them."""

    __slots__ = ("_names",)

    def __init__(self, snapshot: ClusterSnapshot) -> None:
        self._names = {"topic": sorted(snapshot.topics), "group": sorted(snapshot.groups)}

    def matching(self, rule: AccessRule, most: int) -> list[str]:
        """Return some resources that match an ACL's pattern, or the pattern's name without any."""
        is_wildcard = rule.pattern_type == "literal" and rule.resource_name == WILDCARD
        if rule.pattern_type == "literal" and not is_wildcard:
            return [rule.resource_name]
        prefix = "" if is_wildcard else rule.resource_name
        names = self._names.get(rule.resource_type, [])
        first = bisect_left(names, prefix)
        found = names[first : first + most]
        # If no resource matches yet, the pattern's name represents future ones.
        return [name for name in found if name.startswith(prefix)] or [rule.resource_name]


def effects_of(
    decisions: AclDecisions,
    snapshot: ClusterSnapshot,
    existing: Iterable[AccessRule],
    *,
    added: Sequence[AccessRule] = (),
    removed: Sequence[AccessRule] = (),
) -> AclEffects:
    """Return what adding and removing ACLs changes; `existing` are the ones before the change."""
    changed = (*added, *removed)
    resources = _ExistingNames(snapshot)
    targets = dict.fromkeys(map(_target_of, changed))
    own = frozenset(islice(targets, _MOST_OWN))
    names, is_cut = _overlaps(changed, existing, resources, own)
    is_cut = is_cut or len(targets) > len(own)
    for rule in changed:
        target = _target_of(rule)
        if target not in own:
            continue
        compared = names.setdefault(target, {})
        matching = resources.matching(rule, MOST_NAMES + 1)
        new = [name for name in matching if name not in compared]
        # One more than MOST_NAMES shows below that the names are cut.
        compared.update(dict.fromkeys(new[: max(0, MOST_NAMES + 1 - len(compared))]))
        is_cut = is_cut or len(matching) > MOST_NAMES
    others = {_Target(EVERYBODY, WILDCARD, target.resource_type) for target in names} - {*names}
    is_cut = is_cut or any(len(of_target) > MOST_NAMES for of_target in names.values())
    concerned = {target: list(of_target)[:MOST_NAMES] for target, of_target in names.items()}
    for other in sorted(others):
        of_type = [of_one for target, of_one in names.items() if target[2] == other.resource_type]
        merged = dict.fromkeys(name for of_target in of_type for name in of_target)
        concerned[other] = list(merged)[:MOST_NAMES]
    before = _outcomes(decisions, concerned)
    with decisions.changed(added, removed):
        after = _outcomes(decisions, concerned)
    return _effects(before, after, others, is_cut=is_cut)


def _target_of(rule: AccessRule) -> _Target:
    return _Target(rule.principal, rule.host, rule.resource_type)


def _overlaps(
    changed: Sequence[AccessRule],
    existing: Iterable[AccessRule],
    resources: _ExistingNames,
    own: Collection[_Target],
) -> tuple[dict[_Target, dict[str, None]], bool]:
    """Return users and names that changed ACLs share with others, and whether some are left out."""
    # ACLs that allow come first: a change of a deny takes or gives what they allow.
    ordered = sorted((*existing, *changed), key=lambda rule: rule.permission)
    names: dict[_Target, dict[str, None]] = {}
    other_count = 0
    is_cut = len(changed) > _MOST_CHANGED
    for rule in changed[:_MOST_CHANGED]:
        for other in ordered:
            name = common_name(rule, other)
            principal = None if name is None else common_principal(rule.principal, other.principal)
            host = None if principal is None else common_host(rule.host, other.host)
            if name is None or principal is None or host is None:
                continue
            target = _Target(principal, host, rule.resource_type)
            if target not in names and target not in own:
                if other_count >= MOST_OTHERS:
                    is_cut = True
                    continue
                other_count += 1
            most = MOST_NAMES if target in own else _MOST_NAMES_OF_OTHERS
            narrow = rule if name == rule.resource_name else other
            compared = names.setdefault(target, {})
            for matching in resources.matching(narrow, most + 1):
                if len(compared) < most:
                    compared[matching] = None
                elif matching not in compared:
                    is_cut = is_cut or target not in own
                    break
    return names, is_cut


_Outcomes = dict[tuple[_Target, str, str], AccessOutcome]


def _outcomes(decisions: AclDecisions, concerned: dict[_Target, list[str]]) -> _Outcomes:
    return {
        (target, operation, name): decisions.decide(
            AccessQuestion(target.principal, host, operation, target.resource_type, name)
        ).outcome
        for target, names in concerned.items()
        for host in (address_of(target.host),)
        for operation in operations_on(target.resource_type)
        for name in names
    }


def operations_on(resource_type: str) -> list[str]:
    """Return the operations on a type of resource, in the words of ACLs."""
    supported = SUPPORTED_OPERATIONS[Resource(RESOURCE_TYPES[resource_type])]
    return [_WORDS[operation] for operation in supported]


def _effects(
    before: _Outcomes, after: _Outcomes, others: set[_Target], *, is_cut: bool
) -> AclEffects:
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
    if is_cut:
        warnings.append(
            f"only {MOST_OTHERS} users of other ACLs with {_MOST_NAMES_OF_OTHERS} resources, and"
            f" {_MOST_OWN} users of the changed ACLs with {MOST_NAMES} resources were compared:"
            " more may change"
        )
    is_known = unknown not in {*before.values(), *after.values()}
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
        is_complete=is_known and not is_cut,
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
