"""Changes of configs: AlterConfigs and IncrementalAlterConfigs.

AlterConfigs sets all configs of a resource; the others return to their defaults.

Source: Kafka's ConfigAdminManager (checks of the receiving broker) and ConfigurationControlManager
with ControllerConfigurationValidator (the controller's).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.base.clock import collected
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError, without_frames
from wirebroker.codecs.permissions import (
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC_CONFIGS,
)
from wirebroker.config import validate_topic_configs
from wirebroker.config.groups import validate_group_configs
from wirebroker.config.lookup import is_list, row_of
from wirebroker.config.rows.row import ConfigError, ConfigType
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.sources.dynamic import check_change, placeholder_refusal, usable
from wirebroker.coordinator.client_metrics.subscription import subscription_of
from wirebroker.coordinator.controller.features.feature_control import (
    MIN_INSYNC_REPLICAS,
    clear_elr_records,
    has_cordoned_directories,
    has_eligible_leader_replicas,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    ResourceType,
    config_record,
)
from wirebroker.coordinator.controller.image.topic_names import check_topic_name
from wirebroker.coordinator.controller.requests.operations import as_field, declare
from wirebroker.coordinator.operation import (
    ControllerResult,
    Operation,
    RecordsOfRequest,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from wirebroker.base.clock import Steps
    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config
    from wirebroker.coordinator.controller.requests.request import Case, ControllerRequest

SET, DELETE, APPEND, SUBTRACT = range(4)

Result = dict[str, Any]


class _Kind(NamedTuple):
    """The configs and defaults of a kind of resource, by config name."""

    is_list: Callable[[str], bool]
    default: Callable[[str], str | None]


# (resource, its values, its kind) -> its new values
_Edit = Callable[[Any, "Mapping[str, str]", _Kind], "dict[str, str]"]


def _is_topic_list(name: str) -> bool:
    return name in TOPIC_ROWS and TOPIC_ROWS[name].type is ConfigType.LIST


def _broker_default(name: str) -> str | None:
    row = row_of(name)
    return None if row is None else row.default


_TOPIC_KIND = _Kind(_is_topic_list, lambda name: TOPIC_ROWS[name].default)
# More than any resource has.
MOST_CONFIGS = 10_000
_MOST_DIGITS = 10

_BROKER_KIND = _Kind(is_list, _broker_default)
# As in Kafka, items cannot be appended to the lists of groups and client metrics.
_WITHOUT_LISTS = _Kind(lambda _name: False, lambda _name: None)
_CHECKED_BY_CONTROLLER = {ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP}


def check_topic_overrides(config: Config, overrides: Mapping[str, str]) -> None:
    """Validate the configs of a topic, alone and together.

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    try:
        validate_topic_configs(config, overrides)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None


def alter_configs(
    request: Any,
    image: ClusterImage,
    config: Config,
    *,
    node_id: int,
    is_incremental: bool = True,
    is_direct: bool = False,
) -> Operation[list[Result]]:
    """Change the configs of the resources of an IncrementalAlterConfigs or AlterConfigs request.

    With `is_direct` no broker has checked the request.

    Raises:
        KafkaError: POLICY_VIOLATION: too many records; nothing is changed.
    """
    counts = resource_counts(request)
    records = RecordsOfRequest()
    results: list[Result] = []
    for resource in request.resources:
        error: KafkaError | None = None
        try:
            check_request(resource, counts, is_incremental=is_incremental)
            edit = _edit if is_incremental else _replace
            changed = _changes(resource, edit, image, config, node_id, is_direct=is_direct)
        except KafkaError as failure:
            error = without_frames(failure)
        else:
            records.extend(changed)
        results.append(altered(resource, error))
        yield
    records.extend(clear_elr_records(image, records.records))
    return ControllerResult(results, [] if request.validate_only else records.records)


def altered(resource: Any, error: KafkaError | None) -> Result:
    """Return the result of one resource."""
    return {
        "error_code": int(error.code if error else ErrorCode.NONE),
        "error_message": error.message if error else None,
        "resource_type": resource.resource_type,
        "resource_name": resource.resource_name,
    }


def locally_refused_configs(
    request: Any, image: ClusterImage, config: Config, *, node_id: int, is_incremental: bool = True
) -> Steps[dict[int, KafkaError]]:
    """Return the errors that the receiving broker finds, by the resources' indexes, in steps.

    A remote controller does not know this broker's settings.
    """
    counts = resource_counts(request)
    refused: dict[int, KafkaError] = {}
    for index, resource in enumerate(request.resources):
        yield
        if resource.resource_type == ResourceType.BROKER:
            try:
                _check_count(resource)
                _check_placeholders(resource, config)
                if not resource.resource_name:
                    continue
                check_request(resource, counts, is_incremental=is_incremental)
                check_this_broker(resource.resource_name, node_id)
                before = image.config(ResourceType.BROKER, resource.resource_name)
                edit = _edit if is_incremental else _replace
                checked = edit(resource, usable(before, config, is_default=False), _BROKER_KIND)
                _check_own(resource.resource_name, checked, image, config, node_id)
            except KafkaError as error:
                refused[index] = without_frames(error)
    return refused


def resource_counts(request: Any) -> Counter[tuple[int, str]]:
    """Return how often a request names each resource."""
    return Counter(
        (resource.resource_type, resource.resource_name) for resource in request.resources
    )


def merged_results(
    resources: list[Any], outcomes: Mapping[int, KafkaError | None], others: Iterator[Any]
) -> Iterator[Any]:
    """Return the results of all resources of a request, in order.

    `outcomes` has errors, or None, of locally decided resources by index; `others` the rest.
    """
    for index, resource in enumerate(resources):
        yield altered(resource, outcomes[index]) if index in outcomes else next(others)


def check_request(resource: Any, counts: Counter[tuple[int, str]], *, is_incremental: bool) -> None:
    """Check a resource without its values.

    Raises:
        KafkaError: INVALID_REQUEST; UNKNOWN_SERVER_ERROR for an unknown operation on a topic,
            group or client metrics.
    """
    if counts[resource.resource_type, resource.resource_name] > 1:
        raise _refused("Each resource may appear only once.")
    _check_shape(resource, is_incremental=is_incremental)


def _check_shape(resource: Any, *, is_incremental: bool) -> None:
    _check_count(resource)
    names = [entry.name for entry in resource.configs]
    if len(set(names)) != len(names):
        raise _refused("A config appears more than once.")
    nulls = [
        entry.name
        for entry in resource.configs
        if entry.value is None and not (is_incremental and entry.config_operation == DELETE)
    ]
    if nulls:
        raise _refused(f"These configs have no value: {', '.join(nulls)}")
    for entry in resource.configs if is_incremental else ():
        if not SET <= entry.config_operation <= SUBTRACT:
            if resource.resource_type in _CHECKED_BY_CONTROLLER:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka's controller
            raise _refused(f"Unknown operation {entry.config_operation} on {entry.name}.")


def _changes(
    resource: Any,
    edit: _Edit,
    image: ClusterImage,
    config: Config,
    node_id: int,
    *,
    is_direct: bool,
) -> list[MetadataRecord]:
    match resource.resource_type:
        case ResourceType.TOPIC:
            return _topic_changes(resource, edit, image, config)
        case ResourceType.BROKER:
            return _broker_changes(resource, edit, image, config, node_id, is_direct=is_direct)
        case ResourceType.GROUP:
            return _group_changes(resource, edit, image, config)
        case ResourceType.CLIENT_METRICS:
            return _client_metrics_changes(resource, edit, image)
        case _:
            raise _unknown_type(resource)


def _unknown_type(resource: Any) -> KafkaError:
    return _refused(f"Unknown resource type {resource.resource_type}")


def _topic_changes(
    resource: Any, edit: _Edit, image: ClusterImage, config: Config
) -> list[MetadataRecord]:
    name = resource.resource_name
    before = image.topic_config(name)
    after = edit(resource, before, _TOPIC_KIND)
    if not name:
        raise _refused("Topics have no default configs.")
    check_topic_name(name)
    check_topic_overrides(config, after)
    if name not in image.topics:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    return _changed(resource, before, after)


def _group_changes(
    resource: Any, edit: _Edit, image: ClusterImage, config: Config
) -> list[MetadataRecord]:
    """Change the configs of a group, which need not exist."""
    before = image.config(ResourceType.GROUP, resource.resource_name)
    after = edit(resource, before, _WITHOUT_LISTS)
    if not resource.resource_name:
        raise _refused("Default group resources are not allowed.")
    try:
        validate_group_configs(config, after)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return _changed(resource, before, after)


def _client_metrics_changes(
    resource: Any, edit: _Edit, image: ClusterImage
) -> list[MetadataRecord]:
    """Change a subscription of clients' metrics."""
    before = image.config(ResourceType.CLIENT_METRICS, resource.resource_name)
    after = edit(resource, before, _WITHOUT_LISTS)
    subscription_of(resource.resource_name, after)
    return _changed(resource, before, after)


def _changed(
    resource: Any, before: Mapping[str, str], after: Mapping[str, str]
) -> list[MetadataRecord]:
    return [
        config_record(resource.resource_type, resource.resource_name, key, after.get(key))
        for key in _config_names(resource, before, after)
        if after.get(key) != before.get(key)
    ]


def _broker_changes(
    resource: Any,
    edit: _Edit,
    image: ClusterImage,
    config: Config,
    node_id: int,
    *,
    is_direct: bool,
) -> list[MetadataRecord]:
    """Change dynamic configs of a broker, or of all brokers if the name is empty.

    Unchanged values are written too, so that a broker reads the files that they name again.
    """
    name = resource.resource_name
    if name:
        _check_registered(name, image, node_id)
    _check_placeholders(resource, config)
    before = image.config(ResourceType.BROKER, name)
    after = edit(resource, before, _BROKER_KIND)
    # Ignore stored values that are unusable here.
    checked = edit(resource, usable(before, config, is_default=not name), _BROKER_KIND)
    if name in {"", str(node_id)}:
        _check_own(name, checked, image, config, node_id)
    else:
        # That broker has checked them against its settings.
        refused = checked.keys() - usable(checked, config, is_default=False).keys()
        if refused:
            raise _refused(f"Broker {name} cannot use {', '.join(sorted(refused))}.")
    named = _config_names(resource, before, after)
    if "cordoned.log.dirs" in named and not has_cordoned_directories(image.features):
        raise KafkaError(
            ErrorCode.INVALID_CONFIG, "cordoned.log.dirs needs a metadata.version of 4.3-IV0."
        )
    if MIN_INSYNC_REPLICAS in named and has_eligible_leader_replicas(image.features):
        _check_one_minimum(name, after)
    if is_direct:
        _check_uncordoning(before, after)
    return [config_record(ResourceType.BROKER, name, key, after.get(key)) for key in named]


def _check_one_minimum(name: str, after: Mapping[str, str]) -> None:
    """Refuse a min.insync.replicas of brokers that differs from the controller's (KIP-966).

    Raises:
        KafkaError: INVALID_CONFIG, with Kafka's texts.
    """
    if name:
        text = f"Broker-level {MIN_INSYNC_REPLICAS} cannot be altered while ELR is enabled."
    elif MIN_INSYNC_REPLICAS not in after:
        text = f"Cluster-level {MIN_INSYNC_REPLICAS} cannot be removed while ELR is enabled."
    else:
        return
    raise KafkaError(ErrorCode.INVALID_CONFIG, text)


def _check_count(resource: Any) -> None:
    """Refuse too many configs, since they are checked without a yield."""
    if len(resource.configs) > MOST_CONFIGS:
        raise _refused(f"More than {MOST_CONFIGS} configs of one resource; split the request.")


def _check_placeholders(resource: Any, config: Config) -> None:
    """Refuse references to config providers: clients must not read the broker's files."""
    for entry in resource.configs:
        refusal = placeholder_refusal(entry.name, entry.value or "", config)
        if refusal is not None:
            raise _refused(refusal)


def _check_uncordoning(before: Mapping[str, str], after: Mapping[str, str]) -> None:
    """Refuse new cordoned directories: controllers do not know those of brokers (KIP-1066).

    Raises:
        KafkaError: INVALID_CONFIG.
    """
    cordoned, requested = (
        {directory.strip() for directory in configs.get("cordoned.log.dirs", "").split(",")} - {""}
        for configs in (before, after)
    )
    if not requested <= cordoned:
        raise KafkaError(
            ErrorCode.INVALID_CONFIG,
            "Controllers cannot add to cordoned.log.dirs: send the request to the broker.",
        )


def _check_own(
    name: str, checked: Mapping[str, str], image: ClusterImage, config: Config, node_id: int
) -> None:
    is_default = not name
    own = image.config(ResourceType.BROKER, str(node_id))
    try:
        check_change(
            config,
            cluster_wide=checked if is_default else image.config(ResourceType.BROKER, ""),
            this_broker=own if is_default else checked,
            is_default=is_default,
        )
    except ConfigError as error:
        raise _refused(str(error)) from None


def own_configs_after(
    resource: Any, image: ClusterImage, *, is_incremental: bool
) -> dict[str, str] | None:
    """Return the configs of a broker after a change; None if the change is invalid."""
    edit = _edit if is_incremental else _replace
    try:
        _check_shape(resource, is_incremental=is_incremental)
        before = image.config(ResourceType.BROKER, resource.resource_name)
        return edit(resource, before, _BROKER_KIND)
    except KafkaError:
        return None


def _check_registered(name: str, image: ClusterImage, node_id: int) -> None:
    if not (name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS):
        raise _refused(f"A broker id must be an integer, not '{name}'.")
    if int(name) not in {node_id, *image.brokers, *image.controllers}:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def _config_names(resource: Any, before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """Return the configs that a request names or removes by omission."""
    names = [entry.name for entry in resource.configs]
    return names + [name for name in before if name not in after and name not in names]


def check_this_broker(name: str, node_id: int) -> None:
    """Refuse a resource that is another broker.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    try:
        broker_id = int(name)
    except ValueError:
        raise _refused(f"A broker id must be an integer, not '{name}'.") from None
    if broker_id != node_id:
        raise _refused(f"This is node {node_id}; send requests for node {name} to that node.")


def _replace(resource: Any, before: Mapping[str, str], kind: _Kind) -> dict[str, str]:
    del before, kind
    return {entry.name: entry.value for entry in resource.configs}


def _edit(resource: Any, before: Mapping[str, str], kind: _Kind) -> dict[str, str]:
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


def _edit_list(change: Any, before: str | None, kind: _Kind) -> str:
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


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)


def _alter(case: Case) -> Operation[dict[str, Any]]:
    altering = alter_configs(
        case.body,
        case.image,
        case.config,
        node_id=case.rules.node_id,
        is_incremental=case.request.key is ApiKey.INCREMENTAL_ALTER_CONFIGS,
        is_direct=case.request.is_direct,
    )
    return as_field("responses", altering)


def _refused_each(request: ControllerRequest, error: KafkaError) -> Steps[dict[str, Any]]:
    results = (altered(resource, error) for resource in request.body.resources)
    return {"responses": (yield from collected(results))}


declare(
    ApiKey.ALTER_CONFIGS,
    _alter,
    permissions=(ALTER_TOPIC_CONFIGS, ALTER_CLUSTER_CONFIGS, ALTER_GROUP_CONFIGS),
    refuse=_refused_each,
)
declare(
    ApiKey.INCREMENTAL_ALTER_CONFIGS,
    _alter,
    permissions=(ALTER_TOPIC_CONFIGS, ALTER_CLUSTER_CONFIGS, ALTER_GROUP_CONFIGS),
    refuse=_refused_each,
)
