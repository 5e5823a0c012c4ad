"""DescribeConfigs on brokers and controllers: effective configs and their sources.

v1 sources and synonyms (KIP-226), v3 types and documentation (KIP-569). Loggers show their levels.

Source: Kafka's ConfigHelper.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.api.configs.runtime_loggers import logger_levels
from wirebroker.api.registry import handles_raw
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
)
from wirebroker.config.describe import describe_client_metrics
from wirebroker.coordinator.controller.configs.broker_configs import check_this_broker
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.coordinator.controller.image.topic_names import check_topic_name
from wirebroker.request.body_decoding import decoded
from wirebroker.request.chunked_response import encode_chunked
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.authorization.access import Authorization
    from wirebroker.base.clock import Clock, Steps
    from wirebroker.config import Config, DescribedConfig
    from wirebroker.coordinator.controller.image.cluster_image import ClusterImage
    from wirebroker.request.request import Reply, Request

NEEDS: Final = (DESCRIBE_TOPIC_CONFIGS, DESCRIBE_CLUSTER_CONFIGS, DESCRIBE_GROUP_CONFIGS)
# A ConfigSource that config/rows/row.py lacks.
_LOGGER_CONFIG = 6


class DescribedNode(NamedTuple):
    """A broker or controller that describes configs."""

    node_id: int
    config: Config
    image: ClusterImage
    clock: Clock
    authorization: Authorization | None


@handles_raw(ApiKey.DESCRIBE_CONFIGS, permissions=NEEDS, cost=Cost.READS)
async def describe_configs(broker: Broker, request: Request) -> Reply:
    """Describe configs of topics, this broker, the cluster default, groups, client metrics."""
    image = broker.metadata.image
    node = DescribedNode(broker.node_id, broker.config, image, broker.clock, broker.authorization)
    return await answer_described_configs(node, request)


async def answer_described_configs(node: DescribedNode, request: Request) -> Reply:
    """Describe each resource; an unknown resource type fails the whole request."""
    body = await decoded(request)
    denied: list[dict[str, Any]] = []
    if node.authorization is not None:
        from wirebroker.authorization.config_rules import denied_configs  # noqa: PLC0415 - if asked for

        access = node.authorization.access_of(request)
        denied = await Slices(node.clock).run(denied_configs(access, body))
    body.resources = await Slices(node.clock).run(_merged_resources(body.resources))
    results = chain(_results(node, body), denied)
    return await encode_chunked(
        request.key, request.version, "results", results, node.clock, errors=request.errors
    )


def _merged_resources(resources: Iterable[Any]) -> Steps[list[Any]]:
    """Merge repeated resources."""
    merged: dict[tuple[int, str], Any] = {}
    for resource in resources:
        first = merged.setdefault((resource.resource_type, resource.resource_name), resource)
        if first is not resource and first.configuration_keys:
            if resource.configuration_keys:
                first.configuration_keys.extend(resource.configuration_keys)
            else:
                first.configuration_keys = None
        yield
    return list(merged.values())


def _results(node: DescribedNode, body: Any) -> Iterator[dict[str, Any]]:
    is_refused = any(resource.resource_type not in ResourceType.ALL for resource in body.resources)
    for resource in body.resources:
        result: dict[str, Any] = {
            "error_message": "",
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
            "configs": [],
        }
        try:
            if is_refused:
                raise _invalid("Unknown resource type.")
            keys = resource.configuration_keys
            requested_keys = frozenset(keys) if keys else None
            result["configs"] = [
                config
                for config in _configs(node, resource, body)
                if requested_keys is None or config["name"] in requested_keys
            ]
        except KafkaError as error:
            result["error_code"] = int(error.code)
            result["error_message"] = error.message or ""
        yield result


def _configs(node: DescribedNode, resource: Any, body: Any) -> list[dict[str, Any]]:
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            described = _topic(node, name)
        case ResourceType.BROKER:
            described = _broker(node, name)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise _invalid("A broker id is required.")
            check_this_broker(name, node.node_id)
            return _plain(logger_levels())
        case ResourceType.CLIENT_METRICS:
            values = node.image.config(resource.resource_type, _required(name))
            described = describe_client_metrics(values)
        case _:
            values = node.image.config(resource.resource_type, _required(name))
            described = node.config.describe_group(values)
    return [_entry(config, body) for config in described]


def _topic(node: DescribedNode, name: str) -> list[DescribedConfig]:
    check_topic_name(name)
    image = node.image
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return node.config.describe_topic(image.topic_config(name))


def _broker(node: DescribedNode, name: str) -> list[DescribedConfig]:
    if not name:
        return node.config.describe_cluster_default()
    check_this_broker(name, node.node_id)
    return node.config.describe_broker()


def _required(name: str) -> str:
    if not name:
        raise _invalid("A resource name is required.")
    return name


def _plain(values: Mapping[str, str]) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "value": value,
            "read_only": False,
            "config_source": _LOGGER_CONFIG,
            "is_sensitive": False,
            "synonyms": [],
            "config_type": 0,
            "documentation": None,
        }
        for name, value in sorted(values.items())
    ]


def _entry(config: DescribedConfig, body: Any) -> dict[str, Any]:
    entry = config._asdict()
    entry["synonyms"] = (
        [synonym._asdict() for synonym in config.synonyms] if body.include_synonyms else []
    )
    if not body.include_documentation:
        entry["documentation"] = None
    return entry


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
