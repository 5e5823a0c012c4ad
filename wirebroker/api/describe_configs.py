"""DescribeConfigs: the configs in force for topics and brokers, and where they come from.

v1 sources and synonyms (KIP-226), v3 types and documentation (KIP-569), v4 flexible.

Of groups and client metrics only what was set is shown; loggers have no levels that could be set
one by one. Configs stand in the order of their names (Kafka's order is a hash table's).

Source: Kafka's ConfigHelper.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles_raw
from wirebroker.api.sliced_answer import encode_sliced_answer
from wirebroker.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.controller.cluster_image import ResourceType
from wirebroker.coordinator.controller.topic_names import check_topic_name
from wirebroker.handlers import Cost
from wirebroker.long_requests import decoded
from wirebroker.needs import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.broker import Broker
    from wirebroker.clock import Steps
    from wirebroker.config import DescribedConfig
    from wirebroker.request import Reply, Request

# DescribeConfigsResponse's ConfigSource of what config.py's rows do not have.
_CLIENT_METRICS_CONFIG = 7
_GROUP_CONFIG = 8


@handles_raw(
    ApiKey.DESCRIBE_CONFIGS,
    needs=(DESCRIBE_TOPIC_CONFIGS, DESCRIBE_CLUSTER_CONFIGS, DESCRIBE_GROUP_CONFIGS),
    cost=Cost.READS,
)
async def describe_configs(broker: Broker, request: Request) -> Reply:
    """Describe each resource by itself; a resource of no known type refuses the whole request."""
    body = await decoded(request)
    denied: list[dict[str, Any]] = []
    if broker.authorization is not None:
        from wirebroker.authorization.config_rules import denied_configs  # noqa: PLC0415 - if asked for

        asking = broker.authorization.asking_of(request)
        denied = await Slices(broker.clock).run(denied_configs(asking, body))
    body.resources = await Slices(broker.clock).run(_each_once(body.resources))
    results = chain(_results(broker, body), denied)
    return await encode_sliced_answer(
        request.key, request.version, "results", results, broker.clock
    )


def _each_once(resources: Iterable[Any]) -> Steps[list[Any]]:
    """Merge resources that a request names repeatedly, with all configs that it names of each."""
    merged: dict[tuple[int, str], Any] = {}
    for each in resources:
        first = merged.setdefault((each.resource_type, each.resource_name), each)
        if first is not each and first.configuration_keys:
            if each.configuration_keys:
                first.configuration_keys.extend(each.configuration_keys)
            else:
                first.configuration_keys = None
        yield
    return list(merged.values())


def _results(broker: Broker, body: Any) -> Iterator[dict[str, Any]]:
    is_refused = any(each.resource_type not in ResourceType.ALL for each in body.resources)
    for resource in body.resources:
        result: dict[str, Any] = {
            "error_message": "",
            "resource_type": resource.resource_type,
            "resource_name": resource.resource_name,
            "configs": [],
        }
        try:
            if is_refused:
                raise _invalid("A resource is of an unknown type.")
            keys = resource.configuration_keys
            wanted = frozenset(keys) if keys else None
            result["configs"] = [
                config
                for config in _configs(broker, resource, body)
                if wanted is None or config["name"] in wanted
            ]
        except KafkaError as error:
            result["error_code"] = int(error.code)
            result["error_message"] = error.message or ""
        yield result


def _configs(broker: Broker, resource: Any, body: Any) -> list[dict[str, Any]]:
    """Return the configs of one resource.

    Raises:
        KafkaError: There is no such resource.
    """
    name = resource.resource_name
    match resource.resource_type:
        case ResourceType.TOPIC:
            described = _topic(broker, name)
        case ResourceType.BROKER:
            described = _broker(broker, name)
        case ResourceType.BROKER_LOGGER:
            if not name:
                raise _invalid("A broker has to be named.")
            _check_broker(broker, name)
            return []
        case ResourceType.CLIENT_METRICS:
            return _kept(broker, resource, source=_CLIENT_METRICS_CONFIG)
        case _:
            return _kept(broker, resource, source=_GROUP_CONFIG)
    return [_entry(config, body) for config in described]


def _topic(broker: Broker, name: str) -> list[DescribedConfig]:
    check_topic_name(name)
    image = broker.metadata.image
    if name not in image.topics:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
    return broker.config.describe_topic(image.topic_config(name))


def _broker(broker: Broker, name: str) -> list[DescribedConfig]:
    if not name:
        return broker.config.describe_cluster_default()
    _check_broker(broker, name)
    return broker.config.describe_broker()


def _check_broker(broker: Broker, name: str) -> None:
    try:
        asked = int(name)
    except ValueError:
        raise _invalid(f"A broker is named by a whole number, not by '{name}'.") from None
    if asked != broker.node_id:
        raise _invalid(f"This is broker {broker.node_id}; broker {name} cannot be asked here.")


def _kept(broker: Broker, resource: Any, *, source: int) -> list[dict[str, Any]]:
    """Return what the metadata holds for a kind of resource that is not served yet."""
    if not resource.resource_name:
        raise _invalid("The resource has to be named.")
    values = broker.metadata.image.config(resource.resource_type, resource.resource_name)
    return [
        {
            "name": name,
            "value": value,
            "read_only": False,
            "config_source": source,
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
