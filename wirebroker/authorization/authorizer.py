"""What decides who may do what: Kafka's StandardAuthorizer, and what one of your own has to be.

    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    authorizer.class.name=my_company.rules:NightlyAuthorizer

One of your own is a Python class whose instances decide (`Authorizer`); it is given the settings
and the standard one, which it may ask. The cluster's ACLs are kept, described and changed with
either. A class of Java's that is not Kafka's own cannot run here and is refused by its name.

Source: Kafka's Authorizer and StandardAuthorizer (KIP-801).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from wirebroker.authorization.acl_index import AclIndex
from wirebroker.codecs.acls import ALLOW
from wirebroker.config import ConfigError, StartError
from wirebroker.config.rows.authorizer import STANDARD, super_users

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.acls import AclEntry
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.image_change import AclChange

_HARDCODED: Final = "hardcode"  # the name by which Kafka asks whether everything is allowed


class Client(NamedTuple):
    """Who asks.

    Attributes:
        principal: As Kafka writes it: `User:alice`, `User:ANONYMOUS`.
        host: The address that the client came from, as Java writes it.
    """

    principal: str
    host: str


class Action(NamedTuple):
    """What is asked for.

    Attributes:
        operation: An `Operation` of codecs/acls.py.
        resource_type: A `Resource` of the same.
        resource_name: The topic, group, transactional id or user; "kafka-cluster".
    """

    operation: int
    resource_type: int
    resource_name: str


class Decision(NamedTuple):
    """What came of a question, and why: an ACL, or a word for the log."""

    is_allowed: bool
    rule: AclEntry | str


class Authorizer(Protocol):
    """Decides. Called on the event loop: it must answer at once, and must not wait.

    What it decides is kept for each client until the ACLs change: one that decides by anything
    else, such as the time, sets `keeps_decisions = False`.
    """

    def authorize(self, client: Client, action: Action) -> bool:
        """Tell whether a client may do something."""
        ...


class StandardAuthorizer:
    """Kafka's own: super users, then ACLs, then what holds where there are none."""

    __slots__ = ("_allows_without_rules", "_index", "_super_users")

    def __init__(self, config: Config) -> None:
        self._index = AclIndex()
        self._super_users = super_users(config)
        self._allows_without_rules = config.bool("allow.everyone.if.no.acl.found")

    def apply(self, changes: Mapping[bytes, AclChange]) -> None:
        """Take in rules that came or went."""
        for before, after in changes.values():
            if before is not None:
                self._index.remove(before)
            if after is not None:
                self._index.add(after)

    def load(self, entries: Mapping[bytes, AclEntry]) -> None:
        """Go by these rules alone."""
        self._index = AclIndex()
        for entry in entries.values():
            self._index.add(entry)

    def authorize(self, client: Client, action: Action) -> bool:
        """Tell whether a client may do something."""
        return self.decide(client, action).is_allowed

    def decide(self, client: Client, action: Action) -> Decision:
        """Do as `authorize`, and say why."""
        if client.principal in self._super_users:
            return Decision(True, "SuperUser")
        entry, has_rules = self._index.find(
            client.principal,
            client.host,
            action.operation,
            action.resource_type,
            action.resource_name,
        )
        if entry is not None:
            return Decision(entry.permission_type == ALLOW, entry)
        if not has_rules and self._allows_without_rules:
            return Decision(True, "DefaultAllow")
        return Decision(False, "DefaultDeny")

    def allows_some(self, client: Client, operation: int, resource_type: int) -> bool:
        """Tell whether a client may do something to some resource of a kind."""
        if self.authorize(client, Action(operation, resource_type, _HARDCODED)):
            return True
        return self._index.allows_some(client.principal, client.host, operation, resource_type)


def load_authorizer(config: Config, standard: StandardAuthorizer) -> Authorizer:
    """Return what decides: the standard one, or one of the user's own.

    Raises:
        StartError: There is no such class, or it cannot be made.
    """
    name = config.str("authorizer.class.name")
    if name == STANDARD:
        return standard
    module_name, _, class_name = name.partition(":")
    mend = "name an importable one as package.module:Class"
    try:
        made: Any = getattr(importlib.import_module(module_name), class_name)
        authorizer: Authorizer = made(config, standard)
    except (ImportError, AttributeError, TypeError, ValueError, ConfigError) as error:
        raise StartError(f"authorizer.class.name={name} cannot be used: {error}", mend) from error
    if not callable(getattr(authorizer, "authorize", None)):
        raise StartError(f"authorizer.class.name={name} has no method authorize", mend)
    return authorizer
