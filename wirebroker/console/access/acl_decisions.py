"""Whether a principal may do something, by the ACLs of a cluster, and which rule decides.

The rules are those of the brokers' StandardAuthorizer: a deny wins, a literal or prefixed pattern
and the wildcard match, and some operations imply others.
"""

from __future__ import annotations

import enum
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.authorization.authorizer import Action, Client, StandardAuthorizer
from wirebroker.client.security.acls import (
    OPERATIONS,
    RESOURCE_TYPES,
    AccessRule,
    entry_of,
    rule_of,
)
from wirebroker.console.access.brokers_access import brokers_access
from wirebroker.console.model import details
from wirebroker.coordinator.controller.image.image_change import AclChange

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable

    from wirebroker.codecs.acls import AclEntry
    from wirebroker.console.access.brokers_access import BrokersAccess
    from wirebroker.console.model.collector import Collector

# The authorizer's word for a resource without ACLs, where everyone is allowed.
_NO_RULES: Final = "DefaultAllow"
_SUPER_USER: Final = "SuperUser"


class AccessQuestion(NamedTuple):
    """May a principal do something?

    Attributes:
        principal: `User:alice`.
        host: The client's address; `*` for one that no rule names.
        operation, resource_type: Words of the ACLs' tables.
    """

    principal: str
    host: str
    operation: str
    resource_type: str
    resource_name: str


class AccessOutcome(enum.Enum):
    """An answer; UNKNOWN if a config decides that the brokers do not show."""

    ALLOWED = "allowed"
    DENIED = "denied"
    UNKNOWN = "unknown"


class AccessAnswer(NamedTuple):
    """An answer with its reason.

    Attributes:
        rule: The ACL that decides, if one does.
        has_rules: Whether any ACL concerns the resource.
    """

    outcome: AccessOutcome
    reason: str
    rule: AccessRule | None
    has_rules: bool


class AclDecisions:
    """Decisions by a set of ACLs; ACLs with words of a newer Kafka are left out."""

    __slots__ = ("_authorizer", "_brokers", "unknown_count")

    def __init__(self, brokers: BrokersAccess) -> None:
        self._brokers = brokers
        # `allows_without_rules` makes it tell a resource without rules.
        self._authorizer = StandardAuthorizer(
            brokers.super_users or frozenset(), allows_without_rules=True
        )
        self.unknown_count = 0

    def add(self, rule: AccessRule) -> None:
        """Add an ACL."""
        entry = entry_of(rule)
        if entry is None:
            self.unknown_count += 1
        else:
            self._change(None, entry)

    def _change(self, before: AclEntry | None, after: AclEntry | None) -> None:
        self._authorizer.apply({b"": AclChange(before, after)})

    @contextmanager
    def changed(
        self, added: Iterable[AccessRule], removed: Iterable[AccessRule]
    ) -> Generator[None]:
        """Decide with other ACLs while the context lasts, which must not await."""
        changes: list[tuple[AclEntry | None, AclEntry | None]] = [
            *((None, entry_of(rule)) for rule in added),
            *((entry_of(rule), None) for rule in removed),
        ]
        changes = [pair for pair in changes if pair != (None, None)]
        for before, after in changes:
            self._change(before, after)
        try:
            yield
        finally:
            for before, after in changes:
                self._change(after, before)

    def decide(self, question: AccessQuestion) -> AccessAnswer:
        """Answer a question."""
        action = Action(
            OPERATIONS[question.operation],
            RESOURCE_TYPES[question.resource_type],
            question.resource_name,
        )
        client = Client(question.principal, question.host)
        is_allowed, deciding = self._authorizer.decide(client, action)
        if deciding == _SUPER_USER:
            return AccessAnswer(
                AccessOutcome.ALLOWED, "the principal is in super.users", None, has_rules=True
            )
        if deciding == _NO_RULES:
            return self._without_rules()
        if isinstance(deciding, str):
            reason = "no ACL allows it, and other ACLs concern the resource"
            return AccessAnswer(AccessOutcome.DENIED, reason, None, has_rules=True)
        outcome = AccessOutcome.ALLOWED if is_allowed else AccessOutcome.DENIED
        reason = "this ACL allows it" if is_allowed else "this ACL denies it, and a deny wins"
        return AccessAnswer(outcome, reason, rule_of(deciding), has_rules=True)

    def _without_rules(self) -> AccessAnswer:
        allows = self._brokers.allows_without_rules
        if allows is None:
            return AccessAnswer(
                AccessOutcome.UNKNOWN,
                "no ACL concerns the resource: allow.everyone.if.no.acl.found decides, which the"
                " brokers do not show",
                None,
                has_rules=False,
            )
        reason = f"no ACL concerns the resource, and allow.everyone.if.no.acl.found={allows}"
        outcome = AccessOutcome.ALLOWED if allows else AccessOutcome.DENIED
        return AccessAnswer(outcome, reason.lower(), None, has_rules=False)


async def acl_decisions(collector: Collector) -> AclDecisions:
    """Return the decisions by the ACLs of a cluster, read in the last seconds.

    Raises:
        ClientError: The cluster does not respond, or refuses to list ACLs.
    """

    async def build() -> AclDecisions:
        return await decisions_by(collector, await details.acls(collector))

    return await collector.details.get("acl decisions", build)


async def decisions_by(collector: Collector, rules: Iterable[AccessRule]) -> AclDecisions:
    """Return the decisions by these ACLs and the brokers' configs, built in slices."""
    decisions = AclDecisions(await brokers_access(collector))
    slices = collector.cluster.slices()
    for rule in rules:
        decisions.add(rule)
        await slices.turn()
    return decisions
