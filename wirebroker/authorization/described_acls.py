"""DescribeAcls: the cluster's ACLs that match a filter, grouped by resource pattern.

Source: Kafka's AclApis, DescribeAclsResponse.aclsResources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.base.clock import Slices, finish
from wirebroker.codecs.acls import filter_of, has_unknown
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.controller.security.acl_control import AUTHORIZER
from wirebroker.request.request import CloseConnectionError, LargeResponse

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.base.clock import Clock, Steps
    from wirebroker.codecs.acls import AclEntry, AclFilter
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage

_Pattern = tuple[int, str, int]


async def describe_rules(
    body: Any, image: ClusterImage, config: Config, clock: Clock
) -> dict[str, Any]:
    """Return the response to a DescribeAcls; SECURITY_DISABLED without an authorizer.

    Raises:
        CloseConnectionError: The filter has an unknown code.
    """
    acl_filter = filter_of(body)
    finish(check_each([acl_filter]))
    if not config.optional_str(AUTHORIZER):
        message = "No Authorizer is configured on the broker"
        return {"error_code": int(ErrorCode.SECURITY_DISABLED), "error_message": message}
    slices = Slices(clock)
    rules_by_pattern: dict[_Pattern, list[dict[str, Any]]] = {}
    for entry in image.acls.values():
        if acl_filter.fits(entry):
            rules_by_pattern.setdefault(_pattern(entry), []).append(_rule(entry))
        await slices.turn()
    return LargeResponse(
        resources=[
            {"resource_type": kind, "resource_name": name, "pattern_type": pattern, "acls": rules}
            for (kind, name, pattern), rules in rules_by_pattern.items()
        ]
    )


def check_each(parts: Iterable[AclEntry | AclFilter]) -> Steps[None]:
    """Check the codes of rules or filters, in steps.

    Raises:
        CloseConnectionError: A code is unknown; Kafka closes the connection, too.
    """
    for part in parts:
        if has_unknown(part):
            raise CloseConnectionError("an ACL or an ACL filter has an unknown enum value")
        yield


def _pattern(entry: AclEntry) -> _Pattern:
    return entry.resource_type, entry.resource_name, entry.pattern_type


def _rule(entry: AclEntry) -> dict[str, Any]:
    return {
        "principal": entry.principal,
        "host": entry.host,
        "operation": entry.operation,
        "permission_type": entry.permission_type,
    }
