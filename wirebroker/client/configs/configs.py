"""Configs of topics, brokers and other resources (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import ClientError, UnservedError, check, did_you_mean
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.net.client.connection import Body

# Resource types.
TOPIC: Final = 2
BROKER: Final = 4
BROKER_LOGGER: Final = 8
CLIENT_METRICS: Final = 16
GROUP: Final = 32

_PLURALS: Final = {TOPIC: "topics", GROUP: "groups", CLIENT_METRICS: "client metrics"}

_SET: Final = 0
_DELETE: Final = 1

# Kafka's ConfigSource.
_SOURCES: Final = {
    1: "topic",
    2: "this broker",
    3: "all brokers",
    4: "file",
    5: "default",
    6: "logger",
    7: "client metrics",
    8: "group",
}
# Names in Kafka's tools.
_NAMES: Final = {
    1: "DYNAMIC_TOPIC_CONFIG",
    2: "DYNAMIC_BROKER_CONFIG",
    3: "DYNAMIC_DEFAULT_BROKER_CONFIG",
    4: "STATIC_BROKER_CONFIG",
    5: "DEFAULT_CONFIG",
    6: "DYNAMIC_BROKER_LOGGER_CONFIG",
    7: "DYNAMIC_CLIENT_METRICS_CONFIG",
    8: "DYNAMIC_GROUP_CONFIG",
}
# Set for the resource itself. A topic also has values of all brokers, such as min.insync.replicas.
_SET_SOURCES: Final = frozenset({1, 2, 3, 6, 7, 8})
_SET_SOURCES_OF_TOPIC: Final = frozenset({1})


# Kafka's ConfigDef.Type in responses.
_TYPES: Final = {
    1: "boolean",
    2: "string",
    3: "int",
    4: "short",
    5: "long",
    6: "double",
    7: "list",
    8: "class",
    9: "password",
}
# First version of DescribeConfigs with types and help texts (KIP-569).
_FIRST_WITH_DOCUMENTATION: Final = 3


class ConfigSynonym(NamedTuple):
    """A source of a config's value, the one in effect first."""

    source: str  # name in Kafka's tools
    name: str
    value: str | None


class ConfigEntry(NamedTuple):
    """One config."""

    name: str
    value: str | None  # None for a secret
    source: str
    is_set: bool  # for this resource, not by a file or default
    is_read_only: bool
    is_sensitive: bool
    synonyms: tuple[ConfigSynonym, ...]  # empty unless requested
    type: str = ""  # boolean, string, int, …; before Kafka 2.6 unknown
    documentation: str | None = None  # None unless requested


async def configs_of(
    client: KafkaClient,
    kind: int,
    name: str,
    *,
    names: Sequence[str] | None = None,
    synonyms: bool = False,
    documentation: bool = False,
) -> list[ConfigEntry]:
    """Return the configs of a resource, by name; `names` limits them.

    The name of a broker is its id, or "" for the defaults of all. `synonyms` adds the values of
    other sources, `documentation` the brokers' help texts.
    """
    keys = None if names is None else list(names)
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    fields: dict[str, Any] = {"resources": [resource], "include_synonyms": synonyms}

    def with_documentation(version: int) -> dict[str, Any]:
        is_served = version >= _FIRST_WITH_DOCUMENTATION
        return fields | ({"include_documentation": True} if is_served else {})

    body = with_documentation if documentation else fields
    answer = await _request(client, ApiKey.DESCRIBE_CONFIGS, kind, name, body)
    (result,) = answer.results
    check(
        result.error_code,
        f"the configs of {label(kind, name)} cannot be read",
        result.error_message,
    )
    set_sources = _SET_SOURCES_OF_TOPIC if kind == TOPIC else _SET_SOURCES
    rows = [
        ConfigEntry(
            config.name,
            None if config.is_sensitive else config.value,
            _SOURCES.get(config.config_source, "unknown"),
            config.config_source in set_sources,
            config.read_only,
            config.is_sensitive,
            tuple(
                ConfigSynonym(_NAMES.get(synonym.source, "UNKNOWN"), synonym.name, synonym.value)
                for synonym in config.synonyms
            ),
            _TYPES.get(getattr(config, "config_type", 0), ""),
            getattr(config, "documentation", None) or None,
        )
        for config in result.configs
    ]
    return sorted(rows)


async def config_of_topics(
    client: KafkaClient, topics: Sequence[str], config: str
) -> dict[str, str | None]:
    """Return one config of several topics, without topics that the user may not describe."""
    resources = [
        {"resource_type": TOPIC, "resource_name": topic, "configuration_keys": [config]}
        for topic in topics
    ]
    answer = await client.request(ApiKey.DESCRIBE_CONFIGS, {"resources": resources})
    return {
        result.resource_name: row.value
        for result in answer.results
        if not result.error_code
        for row in result.configs
        if row.name == config
    }


async def configured_groups(client: KafkaClient) -> list[str] | None:
    """Return the groups that have configs; None if this user or an older broker cannot list them.

    Such groups need not exist.
    """
    try:
        answer = await client.request(ApiKey.LIST_CONFIG_RESOURCES, {})
    except UnservedError:
        return None
    if answer.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        return None
    check(answer.error_code, "groups with configs cannot be listed")
    kinds = {resource.resource_type for resource in answer.config_resources}
    if BROKER not in kinds:
        return None  # version 0 lists only client metrics
    return sorted(
        resource.resource_name
        for resource in answer.config_resources
        if resource.resource_type == GROUP
    )


async def configured_client_metrics(client: KafkaClient) -> list[str]:
    """Return the names of the client metrics resources (KIP-714)."""
    body = {"resource_types": [CLIENT_METRICS]}
    answer = await client.request(ApiKey.LIST_CONFIG_RESOURCES, body)
    check(answer.error_code, "client metrics cannot be listed")
    return sorted(resource.resource_name for resource in answer.config_resources)


async def alter_configs(
    client: KafkaClient,
    kind: int,
    name: str,
    changes: Mapping[str, str | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set configs, all or none; None restores a default. With `validate_only` nothing is set."""
    rows = [
        {"name": key, "config_operation": _DELETE if value is None else _SET, "value": value}
        for key, value in changes.items()
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": rows}
    body = {"resources": [resource], "validate_only": validate_only}
    answer = await _request(client, ApiKey.INCREMENTAL_ALTER_CONFIGS, kind, name, body)
    (result,) = answer.responses
    check(
        result.error_code,
        f"the configs of {label(kind, name)} cannot be changed",
        result.error_message,
    )


def check_names(kind: int, names: Iterable[str], configs: Iterable[ConfigEntry]) -> None:
    """Check that each name is one of `configs`, the configs of a resource of this kind.

    Brokers accept unknown names, for plugins.

    Raises:
        ClientError: There is no such config; the message suggests a similar one.
    """
    if kind == BROKER:
        return
    known = [config.name for config in configs]
    for name in names:
        if name not in known:
            raise ClientError(f"{_PLURALS[kind]} have no config {name}{did_you_mean(name, known)}")


def label(kind: int, name: str) -> str:
    """Return a resource's name for sentences."""
    if kind == TOPIC:
        return f"topic {name}"
    if kind == GROUP:
        return f"group {name}"
    if kind == CLIENT_METRICS:
        return f"client metrics {name}"
    if kind == BROKER_LOGGER:
        return f"loggers of broker {name}"
    return f"broker {name}" if name else "all brokers"


async def _request(client: KafkaClient, key: ApiKey, kind: int, name: str, body: Body) -> Any:
    is_change = key is ApiKey.INCREMENTAL_ALTER_CONFIGS
    # The active controller alters configs of any node; the rest only the node itself knows.
    of_node = {BROKER_LOGGER} if client.uses_controllers and is_change else {BROKER, BROKER_LOGGER}
    if kind in of_node and name:
        return await client.request_of(int(name), key, body)
    if client.uses_controllers:
        return await client.request_of_controller(key, body)
    return await client.request(key, body)
