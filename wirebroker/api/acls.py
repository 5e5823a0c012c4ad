"""DescribeAcls, CreateAcls and DeleteAcls: who may do what (KIP-140).

All three: v1 prefixed patterns (KIP-290), v2 flexible, v3 users as resources (KIP-373). Changes are
the controller's (coordinator/controller/acl_control.py); without an authorizer all are refused.
A request with a number that means nothing closes its connection, as in Kafka.

Source: Kafka's AclApis, DescribeAclsResponse.aclsResources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwarded, handles
from wirebroker.clock import Slices
from wirebroker.codecs.acls import creation_of, filter_of, has_unknown
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.acl_control import AUTHORIZER
from wirebroker.handlers import Cost
from wirebroker.needs import ALTER_CLUSTER, DESCRIBE_CLUSTER
from wirebroker.request import CloseConnectionError, LargeResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.broker import Broker
    from wirebroker.codecs.acls import AclEntry, AclFilter
    from wirebroker.request import Request

_Pattern = tuple[int, str, int]


@forwarded
@handles(ApiKey.CREATE_ACLS, needs=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def create_acls(broker: Broker, request: Request, body: Any) -> Any:
    """Add rules; they are in force when the answer leaves."""
    _check(creation_of(each) for each in body.creations)
    return await forward(broker, request, body)


@forwarded
@handles(ApiKey.DELETE_ACLS, needs=(ALTER_CLUSTER,), cost=Cost.CONTROLLER)
async def delete_acls(broker: Broker, request: Request, body: Any) -> Any:
    """Remove rules; they are in force no more when the answer leaves."""
    _check(filter_of(each) for each in body.filters)
    return await forward(broker, request, body)


@handles(ApiKey.DESCRIBE_ACLS, needs=(DESCRIBE_CLUSTER,), cost=Cost.SLICES)
async def describe_acls(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Answer from the committed image, by resource pattern."""
    del request
    wanted = filter_of(body)
    _check([wanted])
    if not broker.config.optional_str(AUTHORIZER):
        message = "No Authorizer is configured on the broker"
        return {"error_code": int(ErrorCode.SECURITY_DISABLED), "error_message": message}
    slices = Slices(broker.clock)
    found: dict[_Pattern, list[dict[str, Any]]] = {}
    for entry in broker.metadata.image.acls.values():
        if wanted.fits(entry):
            found.setdefault(_pattern(entry), []).append(_rule(entry))
        await slices.turn()
    return LargeResponse(
        resources=[
            {"resource_type": kind, "resource_name": name, "pattern_type": pattern, "acls": rules}
            for (kind, name, pattern), rules in found.items()
        ]
    )


def _pattern(entry: AclEntry) -> _Pattern:
    return entry.resource_type, entry.resource_name, entry.pattern_type


def _rule(entry: AclEntry) -> dict[str, Any]:
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission_type,
    }


def _check(parts: Iterable[AclEntry | AclFilter]) -> None:
    if any(map(has_unknown, parts)):
        raise CloseConnectionError("an ACL or a filter of ACLs has an unknown number")
