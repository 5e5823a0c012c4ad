"""The values of a resource after a change, and the records of the difference.

Source: Kafka's ConfigurationControlManager and ConfigAdminManager.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.lookup import is_list, row_of
from wirebroker.config.rows.row import ConfigType
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.coordinator.controller.image.cluster_image import config_record

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.metadata_records import MetadataRecord

SET, DELETE, APPEND, SUBTRACT = range(4)


class ConfigKind(NamedTuple):
    """The configs and defaults of a kind of resource, by config name."""

    is_list: Callable[[str], bool]
    default: Callable[[str], str | None]


# (resource, its values, its kind) -> its new values
Edit = Callable[[Any, "Mapping[str, str]", ConfigKind], "dict[str, str]"]


def _is_topic_list(name: str) -> bool:
    return name in TOPIC_ROWS and TOPIC_ROWS[name].type is ConfigType.LIST


def _broker_default(name: str) -> str | None:
    row = row_of(name)
    return None if row is None else row.default


TOPIC_CONFIGS = ConfigKind(_is_topic_list, lambda name: TOPIC_ROWS[name].default)
BROKER_CONFIGS = ConfigKind(is_list, _broker_default)
# As in Kafka, items cannot be appended to the lists of groups and client metrics.
WITHOUT_LISTS = ConfigKind(lambda _name: False, lambda _name: None)


def replaced(resource: Any, before: Mapping[str, str], kind: ConfigKind) -> dict[str, str]:
    """Return the values of an AlterConfigs request, which replace all others."""
    del before, kind
    return {entry.name: entry.value for entry in resource.configs}


def edited(resource: Any, before: Mapping[str, str], kind: ConfigKind) -> dict[str, str]:
    """Return the values after the operations of an IncrementalAlterConfigs request.

    Raises:
        KafkaError: INVALID_CONFIG: items of a config that is not a list.
    """
    after = dict(before)
    for entry in resource.configs:
        match entry.config_operation:
            case _ if entry.config_operation == SET:
                after[entry.name] = entry.value
            case _ if entry.config_operation == DELETE:
                after.pop(entry.name, None)
            case _:
                after[entry.name] = _edit_list(entry, before.get(entry.name), kind)
    return after


def _edit_list(change: Any, before: str | None, kind: ConfigKind) -> str:
    is_append = change.config_operation == APPEND
    if not kind.is_list(change.name):
        verb = "append to" if is_append else "subtract from"
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Cannot {verb} {change.name}: it is not a list."
        )
    text = kind.default(change.name) if before is None else before
    items = [item for item in (text or "").split(",") if item]
    for item in change.value.split(","):
        if is_append and item not in items:
            items.append(item)
        elif not is_append and item in items:
            items.remove(item)
    return ",".join(items)


def changed_records(
    resource: Any, before: Mapping[str, str], after: Mapping[str, str]
) -> list[MetadataRecord]:
    """Return a record for each value that differs."""
    return [
        config_record(resource.resource_type, resource.resource_name, key, after.get(key))
        for key in config_names(resource, before, after)
        if after.get(key) != before.get(key)
    ]


def config_names(resource: Any, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the configs that a request names or removes by omission."""
    names = [entry.name for entry in resource.configs]
    return names + [name for name in before if name not in after and name not in names]
