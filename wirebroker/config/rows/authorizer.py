"""Settings of the authorizer.

    authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer
    super.users=User:admin;User:CN=broker
    allow.everyone.if.no.acl.found=false

Source: Kafka's StandardAuthorizer.configure, SecurityUtils.parseKafkaPrincipal.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue

STANDARD: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_OWN: Final = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*")


def wrong_authorizer(value: ConfigValue) -> str | None:
    """Return the allowed values of authorizer.class.name if the value is invalid."""
    if not value or value == STANDARD or (isinstance(value, str) and _OWN.fullmatch(value)):
        return None
    return (
        f"it must be {STANDARD}, or a Python class as package.module:Class (other Java classes "
        "are not supported)"
    )
