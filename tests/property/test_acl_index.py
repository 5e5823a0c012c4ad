"""ACL decisions depend only on the present ACLs, not on earlier ones.

The model applies the rule of Kafka's documentation to a plain list. The index must agree after any
additions and removals (the class of CVE-2024-27309, where a removal disabled other rules).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.harness.budget import Budget
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
_HOSTS = ("10.0.0.1", "11.0.0.1", "10.0.0.0/8", "0.0.0.0/0", "*")
_CLIENTS = _HOSTS[:2]
_MEANING = {"*": _CLIENTS, "0.0.0.0/0": _CLIENTS, "10.0.0.0/8": _CLIENTS[:1]}
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
        operations |= {requested for requested, by in _IMPLIED.items() if entry.operation in by}
    return (
        entry.principal in {principal, "User:*"}
        and host in _MEANING.get(entry.host, (entry.host,))
        and operation in operations
    )


def decision(
    entries: list[AclEntry], question: tuple[str, str, int, int, str]
) -> tuple[bool | None, bool]:
    """Return whether access is allowed (None: no rule matches), and whether there are any rules."""
    principal, host, operation, kind, name = question
    about = [entry for entry in entries if fits(entry, kind, name)]
    speaking = {e.permission_type for e in about if says(e, principal, host, operation)}
    if not speaking:
        return None, bool(about)
    return DENY not in speaking, True


def test_index_decides_like_a_list_of_the_remaining_entries(pytestconfig: pytest.Config):
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
            ask = (random.choice(_PRINCIPALS[:2]), random.choice(_CLIENTS))
            question = (*ask, random.choice(_ASKED), random.choice(_TYPES), random.choice(_NAMES))
            result = index.find(*question)
            is_allowed = None if result.entry is None else result.entry.permission_type == ALLOW
            assert (is_allowed, result.has_rules) == decision(entries, question), budget.seed
        while entries:
            index.remove(entries.pop(random.randrange(len(entries))))
        empty = index.find("User:x", _CLIENTS[0], _READ, Resource.TOPIC, "a")
        assert (empty.entry, empty.has_rules) == (None, False)
        histories += 1
    assert histories


def allows_some(entries: list[AclEntry], principal: str, host: str, operation: int) -> bool:
    """Compute `AclIndex.allows_some` for topics from each rule alone."""
    about = [
        entry
        for entry in entries
        if entry.resource_type == Resource.TOPIC
        and entry.principal in {principal, "User:*"}
        and host in _MEANING.get(entry.host, (entry.host,))
        and entry.operation in {operation, ALL_OPERATIONS}
    ]
    denied = [entry for entry in about if entry.permission_type == DENY]
    if any((e.resource_name, e.pattern_type) == ("*", LITERAL) for e in denied):
        return False
    return any(
        not any(
            (e.resource_name, e.pattern_type) == (entry.resource_name, entry.pattern_type)
            or (e.pattern_type == PREFIXED and entry.resource_name.startswith(e.resource_name))
            for e in denied
        )
        or (entry.resource_name, entry.pattern_type) == ("*", LITERAL)
        for entry in about
        if entry.permission_type == ALLOW
    )


def test_allows_some_depends_only_on_the_remaining_entries(
    pytestconfig: pytest.Config,
):
    budget = Budget(pytestconfig, seconds=0.5)
    random = budget.random
    answers: set[bool] = set()
    for _ in budget.rounds():
        index, entries = AclIndex(), list[AclEntry]()
        for _ in range(random.randrange(1, 25)):
            if entries and random.random() < 0.5:
                index.remove(entries.pop(random.randrange(len(entries))))
            else:
                entries.append(some_entry(random))
                index.add(entries[-1])
            ask = (random.choice(_PRINCIPALS[:2]), random.choice(_CLIENTS), random.choice(_ASKED))
            is_allowed = index.allows_some(*ask, Resource.TOPIC)
            assert is_allowed == allows_some(entries, *ask), (budget.seed, entries, ask)
            answers.add(is_allowed)
    assert answers == {True, False}


def test_allows_some_only_if_a_single_resource_is_allowed(pytestconfig: pytest.Config):
    """The result never reveals more than requests for single resources could."""
    budget = Budget(pytestconfig, seconds=0.25)
    random = budget.random
    yes = 0
    for _ in budget.rounds():
        entries = [some_entry(random) for _ in range(random.randrange(1, 8))]
        index = AclIndex()
        for entry in entries:
            index.add(entry)
        ask = ("User:x", _CLIENTS[0], random.choice(_ASKED), Resource.TOPIC)
        if index.allows_some(*ask):
            yes += 1
            names = [*_NAMES, "zz", *(f"{name}z" for name in _NAMES)]
            assert any(decision(entries, (*ask, name))[0] for name in names), entries
    assert yes


def test_allows_some_looks_only_at_the_principals_own_rules() -> None:
    """Rules of other principals cost no time: 10,000 took 10 ms of the loop."""
    looks = 0

    class Principal(str):
        __slots__ = ()

        def __eq__(self, other: object) -> bool:
            return str.__eq__(self, other)

        def __hash__(self) -> int:
            nonlocal looks
            looks += 1
            return str.__hash__(self)

    index = AclIndex()
    for number in range(10_000):
        kind = LITERAL if number % 2 else PREFIXED
        index.add(AclEntry(Resource.TOPIC, f"t{number}", kind, f"User:{number}", "*", _READ, ALLOW))
    for user, may in (("User:7", True), ("User:nobody", False)):
        assert index.allows_some(Principal(user), _CLIENTS[0], _READ, Resource.TOPIC) is may
    assert looks < 100
