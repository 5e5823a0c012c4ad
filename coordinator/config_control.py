"""Configs of topics and brokers changed: IncrementalAlterConfigs in, metadata records out.

A resource changes as a whole or not at all. What is checked is the state after the change, so that
two values that only fit together can be set in one request.

Source: Kafka's ConfigAdminManager (checks of the broker that is asked) and
ConfigurationControlManager with ControllerConfigurationValidator (the controller's).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config import Mutability, validate_topic_configs
from wirebroker.config_row import ConfigError, ConfigType
from wirebroker.config_table import BROKER_ROWS
from wirebroker.config_topic import TOPIC_ROWS
from wirebroker.coordinator.cluster_image import ClusterImage, ResourceType, config_record
from wirebroker.coordinator.operation import ControllerResult, Operation, RecordsOfRequest
from wirebroker.coordinator.topic_names import check_topic_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.config_row import ConfigRow

SET, DELETE, APPEND, SUBTRACT = range(4)

Result = dict[str, Any]


def check_topic_overrides(config: Config, overrides: Mapping[str, str]) -> None:
    """Check the configs of a topic, alone and together.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    try:
        validate_topic_configs(config, overrides)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def alter_configs(
    request: Any, image: ClusterImage, config: Config, *, node_id: int
) -> Operation[list[Result]]:
    """Change the configs of the resources of an IncrementalAlterConfigs request.

    Raises:
        KafkaError: POLICY_VIOLATION if all together are too many records; nothing is changed.
    """
    wanted = Counter((each.resource_type, each.resource_name) for each in request.resources)
    records = RecordsOfRequest()
    results: list[Result] = []
    for resource in request.resources:
        key = (resource.resource_type, resource.resource_name)
        error: KafkaError | None = None
        try:
            if wanted[key] > 1:
                raise _refused("Each resource may appear only once.")
            _check_shape(resource)
            changed = _changes(resource, image, config, node_id)
        except KafkaError as failure:
            error = failure
        else:
            records.extend(changed)
        results.append(
            {
                "error_code": int(error.code if error else ErrorCode.NONE),
                "error_message": error.message if error else None,
                "resource_type": resource.resource_type,
                "resource_name": resource.resource_name,
            }
        )
        yield
    return ControllerResult(results, [] if request.validate_only else records.records)


def _check_shape(resource: Any) -> None:
    """Check what does not depend on the kind of resource."""
    names = [each.name for each in resource.configs]
    if len(set(names)) != len(names):
        raise _refused("A config appears more than once.")
    nulls = [
        each.name
        for each in resource.configs
        if each.value is None and each.config_operation != DELETE
    ]
    if nulls:
        raise _refused(f"These configs have no value: {', '.join(nulls)}")
    for each in resource.configs:
        if not SET <= each.config_operation <= SUBTRACT:
            if resource.resource_type == ResourceType.TOPIC:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka's controller
            raise _refused(f"Unknown operation {each.config_operation} on {each.name}.")


def _changes(
    resource: Any, image: ClusterImage, config: Config, node_id: int
) -> list[MetadataRecord]:
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _topic_changes(resource, image, config)
        case ResourceType.BROKER:
            return _broker_changes(resource, image, config, node_id)
        case ResourceType.BROKER_LOGGER | ResourceType.CLIENT_METRICS | ResourceType.GROUP:
            raise _refused("Configs of loggers, client metrics and groups are not served here.")
        case _:
            raise _refused(f"Unknown resource type {resource.resource_type}.")


def _topic_changes(resource: Any, image: ClusterImage, config: Config) -> list[MetadataRecord]:
    name = resource.resource_name
    before = image.topic_config(name)
    after = _edit(resource, before, TOPIC_ROWS)
    if not name:
        raise _refused("There are no default configs of topics.")
    check_topic_name(name)
    check_topic_overrides(config, after)
    if name not in image.topics:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    return [
        config_record(ResourceType.TOPIC, name, each.name, after.get(each.name))
        for each in resource.configs
        if after.get(each.name) != before.get(each.name)
    ]


def _broker_changes(
    resource: Any, image: ClusterImage, config: Config, node_id: int
) -> list[MetadataRecord]:
    """Change dynamic configs of this broker, or of all brokers if the name is empty.

    Records are written for unchanged values too: they make a broker read files again that the
    value only names.
    """
    name = resource.resource_name
    is_default = not name
    if not is_default:
        check_this_broker(name, node_id)
    for each in resource.configs:
        _check_mutability(each.name, is_default=is_default)
    after = _edit(resource, image.config(ResourceType.BROKER, name), BROKER_ROWS)
    own = str(node_id)
    try:
        config.with_dynamic(
            cluster_wide=after if is_default else image.config(ResourceType.BROKER, ""),
            this_broker=image.config(ResourceType.BROKER, own) if is_default else after,
        )
    except ConfigError as error:
        raise _refused(str(error)) from None
    return [
        config_record(ResourceType.BROKER, name, each.name, after.get(each.name))
        for each in resource.configs
    ]


def check_this_broker(name: str, node_id: int) -> None:
    """Refuse a broker resource that is not this broker.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    try:
        asked = int(name)
    except ValueError:
        raise _refused(f"A broker is named by a whole number, not by '{name}'.") from None
    if asked != node_id:
        raise _refused(f"This is broker {node_id}; broker {name} cannot be asked here.")


def _check_mutability(name: str, *, is_default: bool) -> None:
    row = BROKER_ROWS.get(name)
    if row is None:
        return  # somebody else's config, kept as it is
    if row.mutability is Mutability.READ_ONLY:
        raise _refused(f"{name} cannot be changed while the broker runs.")
    if is_default and row.mutability is Mutability.PER_BROKER:
        raise _refused(f"{name} can be set for single brokers only.")


def _edit(
    resource: Any, before: Mapping[str, str], rows: Mapping[str, ConfigRow]
) -> dict[str, str]:
    """Return the values of a resource after the operations of a request."""
    after = dict(before)
    for each in resource.configs:
        match each.config_operation:
            case _ if each.config_operation == SET:
                after[each.name] = each.value
            case _ if each.config_operation == DELETE:
                after.pop(each.name, None)
            case _:
                after[each.name] = _edit_list(each, before.get(each.name), rows.get(each.name))
    return after


def _edit_list(change: Any, before: str | None, row: ConfigRow | None) -> str:
    is_append = change.config_operation == APPEND
    if row is None or row.type is not ConfigType.LIST:
        verb = "append to" if is_append else "subtract from"
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, f"Nobody can {verb} {change.name}: it is not a list."
        )
    text = row.default if before is None else before
    items = [item for item in (text or "").split(",") if item]
    for item in change.value.split(","):
        if is_append and item not in items:
            items.append(item)
        elif not is_append and item in items:
            items.remove(item)
    return ",".join(items)


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
