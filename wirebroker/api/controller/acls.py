"""DescribeAcls on a controller listener; see wirebroker/api/security/acls.py.

Source: Kafka's ControllerApis and AclApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.controller.registry import handles
from wirebroker.authorization.described_acls import describe_rules
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request


@handles(ApiKey.DESCRIBE_ACLS, permissions=(DESCRIBE_CLUSTER,), cost=Cost.SLICES)
async def describe_acls(
    controller: QuorumController, request: Request, body: Any
) -> dict[str, Any]:
    """Describe the ACLs of the committed image, by resource pattern."""
    del request
    image = controller.follower.image
    return await describe_rules(body, image, controller.rules.config, controller.clock)
