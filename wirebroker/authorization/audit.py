"""One line for each decision, in Kafka's words, for logger `kafka.authorizer.logger`.

Denied ones at INFO, allowed ones at DEBUG (wirebroker.log.level=DEBUG shows them). Where a denial
is part of finding out what to show, nobody was denied what he asked for: that is not told.

Source: Kafka's StandardAuthorizerData.logAuditMessage.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from wirebroker.base.wording import camel_case
from wirebroker.codecs.acls import Operation, Resource

if TYPE_CHECKING:
    from wirebroker.authorization.authorizer import Action, Client, Decision
    from wirebroker.codecs.acls import AclEntry
    from wirebroker.codecs.api_keys import ApiKey

LOGGER = logging.getLogger("kafka.authorizer.logger")


def tells_allowed() -> bool:
    """Tell whether somebody wants to be told of what is allowed."""
    return LOGGER.isEnabledFor(logging.DEBUG)


def tell(client: Client, action: Action, key: ApiKey, decision: Decision) -> None:
    """Write down a decision."""
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


def tell_no_more(client: Client, key: ApiKey) -> None:
    """Write down that what else a request is denied is not told."""
    LOGGER.info(
        "Principal = %s from host = %s: what else is denied of this request = %s is not told",
        client.principal,
        client.host,
        camel_case(key.name),
    )


def _said(rule: AclEntry | str) -> str:
    if isinstance(rule, str):
        return rule
    fields = ", ".join(f"{name}={value}" for name, value in rule._asdict().items())
    return f"MatchingAcl(acl={fields})"
