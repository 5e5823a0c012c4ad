"""The interface of authorizers, Kafka's StandardAuthorizer, and loading of custom classes.

    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    authorizer.class.name=my_company.rules:NightlyAuthorizer

A custom authorizer is a Python class. It receives the configuration and the standard authorizer,
which it may call. Java classes other than Kafka's own are refused.

Source: Kafka's Authorizer and StandardAuthorizer (KIP-801).
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol

from wirebroker.authorization.acl_index import AclIndex
from wirebroker.codecs.acls import ALLOW
from wirebroker.config import ConfigError, StartError
from wirebroker.config.rows.authorizer import STANDARD

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.acls import AclEntry
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.image_change import AclChange

_HARDCODED: Final = "hardcode"  # Kafka's name


class Client(NamedTuple):
    """The client of a request.

    Attributes:
        principal: `User:alice`, `User:ANONYMOUS`.
        host: The address, in Java's form.
    """

    principal: str
    host: str


class Action(NamedTuple):
    """An operation on a resource; numbers are those of codecs/acls.py.

    Attributes:
        resource_name: The topic, group, transactional id or user; "kafka-cluster".
    """

    operation: int
    resource_type: int
    resource_name: str


class Decision(NamedTuple):
    """A decision with its reason: an ACL, or a word for the log."""

    is_allowed: bool
    rule: AclEntry | str


class Authorizer(Protocol):
    """Interface of authorizers. Called on the event loop, so it must not block.

    Decisions are cached until the ACLs change. An authorizer that depends on anything else, such as
    the time, sets `keeps_decisions = False`.
    """

    def authorize(self, client: Client, action: Action) -> bool:
        """Return whether a client may do something."""
        ...


class StandardAuthorizer:
    """Kafka's authorizer: super users, then ACLs, then the default for resources without ACLs."""

    __slots__ = ("_allows_without_rules", "_index", "_super_users")

    def __init__(self, super_users: frozenset[str], *, allows_without_rules: bool) -> None:
        self._index = AclIndex()
        self._super_users = super_users
        self._allows_without_rules = allows_without_rules

    @classmethod
    def configured(cls, config: Config) -> StandardAuthorizer:
        """Return the authorizer of a broker.

        Raises:
            ConfigError: An item of super.users is not a principal.
        """
        return cls(
            parse_super_users(config.optional_str("super.users") or ""),
            allows_without_rules=config.bool("allow.everyone.if.no.acl.found"),
        )

    def apply(self, changes: Mapping[bytes, AclChange]) -> None:
        """Add and remove rules."""
        for before, after in changes.values():
            if before is not None:
                self._index.remove(before)
            if after is not None:
                self._index.add(after)

    def load(self, entries: Mapping[bytes, AclEntry]) -> None:
        """Replace all rules."""
        self._index = AclIndex()
        for entry in entries.values():
            self._index.add(entry)

    def authorize(self, client: Client, action: Action) -> bool:
        """See Authorizer."""
        return self.decide(client, action).is_allowed

    def decide(self, client: Client, action: Action) -> Decision:
        """Return a decision with its reason."""
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
        """Return whether a client may do something to some resource of a type."""
        if self.authorize(client, Action(operation, resource_type, _HARDCODED)):
            return True
        return self._index.allows_some(client.principal, client.host, operation, resource_type)


def load_authorizer(config: Config, standard: StandardAuthorizer) -> Authorizer:
    """Return the configured authorizer.

    Raises:
        StartError: The class does not exist or cannot be created.
    """
    name = config.str("authorizer.class.name")
    if name == STANDARD:
        return standard
    module_name, _, class_name = name.partition(":")
    mend = "name an importable one as package.module:Class"
    try:
        authorizer_class: Any = getattr(importlib.import_module(module_name), class_name)
        authorizer: Authorizer = authorizer_class(config, standard)
    except (ImportError, AttributeError, TypeError, ValueError, ConfigError) as error:
        raise StartError(f"authorizer.class.name={name} cannot be used: {error}", mend) from error
    if not callable(getattr(authorizer, "authorize", None)):
        raise StartError(f"authorizer.class.name={name} has no method authorize", mend)
    return authorizer


def parse_super_users(text: str) -> frozenset[str]:
    """Return the principals of super.users, which may do everything.

    Raises:
        ConfigError: An item is not a principal.
    """
    names = [name.strip() for name in text.split(";")]
    for name in names:
        kind, colon, rest = name.partition(":")
        if name and not (kind and colon and rest):
            raise ConfigError(
                f"super.users cannot be used: {name} is not a principal such as User:alice"
            )
    return frozenset(filter(None, names))
