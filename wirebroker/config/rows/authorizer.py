"""Which authorizer is asked for, and who passes it.

    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    super.users=User:admin;User:CN=broker
    allow.everyone.if.no.acl.found=false

A leaf.  Source: Kafka's StandardAuthorizer.configure, SecurityUtils.parseKafkaPrincipal.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.row import ConfigError

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue
    from wirebroker.config.values import Config

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_OWN: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def wrong_authorizer(value: ConfigValue) -> str | None:
    """Return what authorizer.class.name has to be, None if it is."""
    if not value or value == STANDARD or (isinstance(value, str) and _OWN.fullmatch(value)):
        return None
    return (
        f"{STANDARD}, or a class of Python's as package.module:Class (other classes of Java's "
        "cannot run here)"
    )


def super_users(config: Config) -> frozenset[str]:
    """Return the principals that may do everything.

    Raises:
        ConfigError: One is no principal.
    """
    names = [each.strip() for each in (config.optional_str("super.users") or "").split(";")]
    for name in names:
        kind, colon, rest = name.partition(":")
        if name and not (kind and colon and rest):
            raise ConfigError(f"super.users cannot be used: {name} is not like User:alice")
    return frozenset(filter(None, names))
