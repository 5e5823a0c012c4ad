"""ListConfigResources: the names that DescribeConfigs can be asked about (KIP-1142).

v0 client metrics only, v1 the types that were asked for, all of them if none was.

Source: Kafka's KafkaApis.handleListConfigResources.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.cluster_image import ResourceType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from wirebroker.broker import Broker
    from wirebroker.coordinator.cluster_image import ClusterImage


@handles(ApiKey.LIST_CONFIG_RESOURCES)
def list_config_resources(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Answer from the committed image."""
    if request.version == 0:
        wanted = frozenset({ResourceType.CLIENT_METRICS})
    else:
        wanted = frozenset(body.resource_types) or ResourceType.ALL
    if not wanted <= ResourceType.ALL:
        return {"error_code": int(ErrorCode.UNSUPPORTED_VERSION)}
    image = broker.metadata.image
    resources = [
        {"resource_name": name, "resource_type": kind}
        for kind in sorted(wanted)
        for name in _names(image, kind)
    ]
    return {"config_resources": resources}


def _names(image: ClusterImage, kind: int) -> Iterable[str]:
    match kind:
        case ResourceType.TOPIC:
            return image.topics
        case ResourceType.BROKER | ResourceType.BROKER_LOGGER:
            return [str(each.node_id) for each in image.brokers.values() if not each.fenced]
        case _:
            return [name for each, name in image.configs if each == kind and name]
