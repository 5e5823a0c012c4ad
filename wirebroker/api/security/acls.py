"""DescribeAcls, CreateAcls and DeleteAcls (KIP-140).

v1 prefixed patterns (KIP-290), v3 users as resources (KIP-373). Rules:
coordinator/controller/security/acl_control.py. Without an authorizer all are refused. An unknown
code closes the connection, as in Kafka.

Source: Kafka's AclApis, DescribeAclsResponse.aclsResources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwards, handles
from wirebroker.authorization.described_acls import check_each, describe_rules
from wirebroker.base.clock import Slices
from wirebroker.codecs.acls import creation_of, filter_of
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwards(ApiKey.CREATE_ACLS)
async def create_acls(broker: Broker, request: Request, body: Any) -> Any:
    """Add ACLs."""
    steps = check_each(creation_of(creation) for creation in body.creations)
    await Slices(broker.clock).run(steps)
    return await forward(broker, request, body)


@forwards(ApiKey.DELETE_ACLS)
async def delete_acls(broker: Broker, request: Request, body: Any) -> Any:
    """Delete ACLs."""
    await Slices(broker.clock).run(check_each(filter_of(acl_filter) for acl_filter in body.filters))
    return await forward(broker, request, body)


@handles(ApiKey.DESCRIBE_ACLS, permissions=(DESCRIBE_CLUSTER,), cost=Cost.READS)
async def describe_acls(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe the ACLs of the committed image."""
    del request
    return await describe_rules(body, broker.metadata.image, broker.config, broker.clock)
