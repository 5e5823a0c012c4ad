"""Decisions by ACLs are a function of the ACLs that are there, whatever came and went before.

The model is the rule as Kafka's documentation says it, over a plain list; the index has to say the
same after any history of additions and removals (the class of CVE-2024-27309, where a removal
changed what other rules said).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.budget import Budget
from wirebroker.authorization.acl_index import AclIndex
from wirebroker.codecs.acls import (
    ALL_OPERATIONS,
    ALLOW,
    DENY,
    LITERAL,
    PREFIXED,
    AclEntry,
    Operation,
    Resource,
)

if TYPE_CHECKING:
    from random import Random

    import pytest

_NAMES = ("a", "ab", "abc", "b", "ba", "*")
_PRINCIPALS = ("User:x", "User:y", "User:*", "Group:x")
_HOSTS = ("1", "2", "*")
_TYPES = (Resource.TOPIC, Resource.GROUP)
_READ, _DESCRIBE, _CONFIGS = Operation.READ, Operation.DESCRIBE, Operation.DESCRIBE_CONFIGS
_ASKED = (_READ, Operation.WRITE, _DESCRIBE, _CONFIGS)
_OPERATIONS = (*_ASKED, Operation.ALTER_CONFIGS, Operation.ALTER, ALL_OPERATIONS)
_IMPLIED = {
    _DESCRIBE: {_READ, Operation.WRITE, Operation.DELETE, Operation.ALTER},
    _CONFIGS: {Operation.ALTER_CONFIGS},
}


def some_entry(random: Random) -> AclEntry:
    kind = random.choice((LITERAL, PREFIXED))
    names = _NAMES if kind == LITERAL else _NAMES[:-1]
    return AclEntry(
        random.choice(_TYPES),
        random.choice(names),
        kind,
        random.choice(_PRINCIPALS),
        random.choice(_HOSTS),
        random.choice(_OPERATIONS),
        random.choice((ALLOW, ALLOW, DENY)),
    )


def fits(entry: AclEntry, kind: int, name: str) -> bool:
    if entry.resource_type != kind:
        return False
    if entry.pattern_type == PREFIXED:
        return name.startswith(entry.resource_name)
    return entry.resource_name in {name, "*"}


def says(entry: AclEntry, principal: str, host: str, operation: int) -> bool:
    operations = {entry.operation}
    if entry.operation == ALL_OPERATIONS:
        operations = set(_ASKED)
    elif entry.permission_type == ALLOW:
        operations |= {asked for asked, by in _IMPLIED.items() if entry.operation in by}
    return (
        entry.principal in {principal, "User:*"}
        and entry.host in {host, "*"}
        and operation in operations
    )


def decision(
    entries: list[AclEntry], question: tuple[str, str, int, int, str]
) -> tuple[bool | None, bool]:
    """Return whether it is allowed (None: nothing says so), and whether there are rules at all."""
    principal, host, operation, kind, name = question
    about = [entry for entry in entries if fits(entry, kind, name)]
    speaking = {e.permission_type for e in about if says(e, principal, host, operation)}
    if not speaking:
        return None, bool(about)
    return DENY not in speaking, True


def test_any_history_decides_as_the_list_of_what_is_left(pytestconfig: pytest.Config):
    budget = Budget(pytestconfig, seconds=0.75)
    random = budget.random
    histories = 0
    for _ in budget.rounds():
        index, entries = AclIndex(), list[AclEntry]()
        for _ in range(random.randrange(1, 25)):
            if entries and random.random() < 0.4:
                index.remove(entries.pop(random.randrange(len(entries))))
            else:
                entries.append(some_entry(random))
                index.add(entries[-1])
            ask = (random.choice(_PRINCIPALS[:2]), random.choice(_HOSTS[:2]))
            question = (*ask, random.choice(_ASKED), random.choice(_TYPES), random.choice(_NAMES))
            found = index.find(*question)
            said = None if found.entry is None else found.entry.permission_type == ALLOW
            assert (said, found.has_rules) == decision(entries, question), budget.seed
        while entries:
            index.remove(entries.pop(random.randrange(len(entries))))
        empty = index.find("User:x", "1", _READ, Resource.TOPIC, "a")
        assert (empty.entry, empty.has_rules) == (None, False)
        histories += 1
    assert histories


def test_some_resource_is_allowed_only_if_one_is(pytestconfig: pytest.Config):
    """What is told of a kind of resource is never more than what could be found by asking."""
    budget = Budget(pytestconfig, seconds=0.25)
    random = budget.random
    yes = 0
    for _ in budget.rounds():
        entries = [some_entry(random) for _ in range(random.randrange(1, 8))]
        index = AclIndex()
        for entry in entries:
            index.add(entry)
        ask = ("User:x", "1", random.choice(_ASKED), Resource.TOPIC)
        if index.allows_some(*ask):
            yes += 1
            names = [*_NAMES, "zz", *(f"{name}z" for name in _NAMES)]
            assert any(decision(entries, (*ask, name))[0] for name in names), entries
    assert yes
