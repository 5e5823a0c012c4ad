"""DescribeConfigs at a broker; see wirebroker/described_configs.py."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.registry import handles_raw
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.described_configs import DescribedNode, answer_described_configs
from wirebroker.handlers import Cost
from wirebroker.needs import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
)

if TYPE_CHECKING:
    from wirebroker.broker import Broker
    from wirebroker.request import Reply, Request


@handles_raw(
    ApiKey.DESCRIBE_CONFIGS,
    needs=(DESCRIBE_TOPIC_CONFIGS, DESCRIBE_CLUSTER_CONFIGS, DESCRIBE_GROUP_CONFIGS),
    cost=Cost.READS,
)
async def describe_configs(broker: Broker, request: Request) -> Reply:
    """Describe topics, this broker, and what is set for all brokers, groups and client metrics."""
    image = broker.metadata.image
    node = DescribedNode(broker.node_id, broker.config, image, broker.clock, broker.authorization)
    return await answer_described_configs(node, request)
