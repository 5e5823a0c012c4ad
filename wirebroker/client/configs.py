"""Configs of topics and brokers, read and changed (KIP-339)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

# Resource types of the protocol.
TOPIC: Final = 2
BROKER: Final = 4

_SET: Final = 0
_DELETE: Final = 1

# Kafka's ConfigSource: where a value comes from.
_SOURCES: Final = {
    1: "topic",
    2: "this broker",
    3: "all brokers",
    4: "file",
    5: "default",
    6: "logger",
    8: "group",
}
# Those that AlterConfigs has set.
_SET_SOURCES: Final = frozenset({1, 2, 3, 6, 8})


class ConfigEntry(NamedTuple):
    """One config of a topic or broker."""

    name: str
    value: str | None  # None where it is a secret
    source: str
    is_set: bool  # by whoever altered it, not by a file or default
    is_read_only: bool


async def configs_of(
    client: KafkaClient, kind: int, name: str, *, names: Sequence[str] | None = None
) -> list[ConfigEntry]:
    """Return the configs of a topic or broker, in order of their names.

    Args:
        client: The cluster.
        kind: TOPIC or BROKER.
        name: The topic's name; the broker's id, or "" for the defaults of all brokers.
        names: Which configs; None is all.

    Raises:
        ClientError: There is none of that name.
    """
    keys = None if names is None else list(names)
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": keys}
    answer = await _ask(client, ApiKey.DESCRIBE_CONFIGS, kind, name, {"resources": [resource]})
    (result,) = answer.results
    check(
        result.error_code,
        f"the configs of {label(kind, name)} cannot be read",
        result.error_message,
    )
    rows = [
        ConfigEntry(
            each.name,
            None if each.is_sensitive else each.value,
            _SOURCES.get(each.config_source, "unknown"),
            each.config_source in _SET_SOURCES,
            each.read_only,
        )
        for each in result.configs
    ]
    return sorted(rows)


async def alter_configs(
    client: KafkaClient, kind: int, name: str, changes: Mapping[str, str | None]
) -> None:
    """Set configs of a topic or broker; None takes one back to its default.

    Raises:
        ClientError: It is refused; nothing is changed then.
    """
    rows = [
        {"name": key, "config_operation": _DELETE if value is None else _SET, "value": value}
        for key, value in changes.items()
    ]
    resource = {"resource_type": kind, "resource_name": name, "configs": rows}
    body = {"resources": [resource]}
    answer = await _ask(client, ApiKey.INCREMENTAL_ALTER_CONFIGS, kind, name, body)
    (result,) = answer.responses
    check(
        result.error_code,
        f"the configs of {label(kind, name)} cannot be changed",
        result.error_message,
    )


def label(kind: int, name: str) -> str:
    """Return how a resource is called in a sentence."""
    if kind == TOPIC:
        return f"topic {name}"
    return f"broker {name}" if name else "all brokers"


async def _ask(
    client: KafkaClient, key: ApiKey, kind: int, name: str, body: Mapping[str, Any]
) -> Any:
    if kind == BROKER and name:  # only it knows its file
        return await client.request_of(int(name), key, body)
    return await client.request(key, body)
