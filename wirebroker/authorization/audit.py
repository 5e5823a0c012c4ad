"""Audit log of authorization decisions, in Kafka's format: logger `kafka.authorizer.logger`.

Denials are logged at INFO, allowed ones at DEBUG. Denials that only filter a response are not
logged.

Source: Kafka's StandardAuthorizerData.logAuditMessage.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.text import camel_case
from wirebroker.codecs.acls import Operation, Resource

if TYPE_CHECKING:
    from wirebroker.authorization.authorizer import Action, Client, Decision
    from wirebroker.codecs.acls import AclEntry
    from wirebroker.codecs.api_keys import ApiKey

LOGGER = logging.getLogger("kafka.authorizer.logger")


def logs_allowed() -> bool:
    """Return whether allowed decisions are logged."""
    return LOGGER.isEnabledFor(logging.DEBUG)


def tell(client: Client, action: Action, key: ApiKey, decision: Decision) -> None:
    """Log a decision."""
    level = logging.DEBUG if decision.is_allowed else logging.INFO
    if not LOGGER.isEnabledFor(level):
        return
    operation = camel_case(Operation(action.operation).name)
    resource = camel_case(Resource(action.resource_type).name)
    LOGGER.log(
        level,
        "Principal = %s is %s operation = %s from host = %s on resource = %s:LITERAL:%s for "
        "request = %s with resourceRefCount = 1 based on rule %s",
        client.principal,
        "Allowed" if decision.is_allowed else "Denied",
        operation,
        client.host,
        resource,
        action.resource_name,
        camel_case(key.name),
        _said(decision.rule),
    )


def log_limit_reached(client: Client, key: ApiKey) -> None:
    """Log that a request's further denials are not logged."""
    LOGGER.info(
        "Principal = %s from host = %s: further denials of this request = %s are not logged",
        client.principal,
        client.host,
        camel_case(key.name),
    )


def _said(rule: AclEntry | str) -> str:
    if isinstance(rule, str):
        return rule
    fields = ", ".join(f"{name}={value}" for name, value in rule._asdict().items())
    return f"MatchingAcl(acl={fields})"
