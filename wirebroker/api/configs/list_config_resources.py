"""ListConfigResources: the resources that DescribeConfigs can describe (KIP-1142).

v0 only client metrics, v1 the requested types, by default all.

Source: Kafka's KafkaApis.handleListConfigResources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.api.registry import handles_raw
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.messages import encode_response
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER_CONFIGS
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.request.body_decoding import decoded
from wirebroker.request.chunked_response import encode_chunked
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.request import Reply, Request


@handles_raw(ApiKey.LIST_CONFIG_RESOURCES, permissions=(DESCRIBE_CLUSTER_CONFIGS,), cost=Cost.READS)
async def list_config_resources(broker: Broker, request: Request) -> Reply:
    """List the resources of the committed image."""
    key, version = request.key, request.version
    body = await decoded(request)
    if version == 0:
        resource_types = frozenset({ResourceType.CLIENT_METRICS})
    else:
        resource_types = frozenset[int](body.resource_types) or ResourceType.ALL
    if not resource_types <= ResourceType.ALL:
        error = int(ErrorCode.UNSUPPORTED_VERSION)
        return [encode_response(key, version, {"error_code": error}, request.errors)]
    image = broker.metadata.image
    resources = (
        {"resource_name": name, "resource_type": kind}
        for kind in sorted(resource_types)
        for name in _names(image, kind)
    )
    return await encode_chunked(
        key, version, "config_resources", resources, broker.clock, has_error_code=True
    )


def _names(image: ClusterImage, kind: int) -> Iterable[str]:
    match kind:
        case ResourceType.TOPIC:
            return image.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(broker.node_id) for broker in image.brokers.values() if not broker.fenced]
        case _:
            return [name for config_kind, name in image.configs if config_kind == kind and name]
