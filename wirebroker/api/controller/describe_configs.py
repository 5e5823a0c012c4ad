"""DescribeConfigs on a controller listener; see wirebroker/api/configs/described_configs.py.

Source: Kafka's ControllerApis.handleDescribeConfigsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.configs.described_configs import NEEDS, DescribedNode, answer_described_configs
from wirebroker.api.controller.registry import handles_raw
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Reply, Request


@handles_raw(ApiKey.DESCRIBE_CONFIGS, permissions=NEEDS, cost=Cost.READS)
async def describe_configs(controller: QuorumController, request: Request) -> Reply:
    """Describe configs of topics, this controller and the cluster default."""
    rules, image = controller.rules, controller.follower.image
    node = DescribedNode(
        rules.node_id, rules.config, image, controller.clock, controller.authorization
    )
    return await answer_described_configs(node, request)
