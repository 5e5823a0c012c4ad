"""DescribeConfigs on brokers; see wirebroker/api/configs/described_configs.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.configs.described_configs import NEEDS, DescribedNode, answer_described_configs
from wirebroker.api.registry import handles_raw
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Reply, Request


@handles_raw(ApiKey.DESCRIBE_CONFIGS, permissions=NEEDS, cost=Cost.READS)
async def describe_configs(broker: Broker, request: Request) -> Reply:
    """Describe configs of topics, this broker, the cluster default, groups, client metrics."""
    image = broker.metadata.image
    node = DescribedNode(broker.node_id, broker.config, image, broker.clock, broker.authorization)
    return await answer_described_configs(node, request)
