"""ApiVersions on a controller listener; versions as in wirebroker/api/cluster/api_versions.py.

Source: Kafka's ControllerApis.handleApiVersionsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.cluster.api_versions import answer_versions
from wirebroker.api.controller.registry import CONTROLLER_REGISTRY, handles_raw
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Reply, Request


@handles_raw(ApiKey.API_VERSIONS, permissions=(), cost=Cost.BOUNDED)
def api_versions(controller: QuorumController, request: Request) -> Reply:
    """Return all keys with handlers here."""
    keys = CONTROLLER_REGISTRY.registered_keys()
    return answer_versions(request, keys, controller.follower.image)
