"""Changes of configs: AlterConfigs and IncrementalAlterConfigs.

AlterConfigs sets all configs of a resource; the others return to their defaults.

Source: Kafka's ConfigAdminManager (checks of the receiving broker) and ConfigurationControlManager
with ControllerConfigurationValidator (the controller's).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

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
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.dynamic import usable
from wirebroker.coordinator.client_metrics.subscription import subscription_of
from wirebroker.coordinator.controller.configs.broker_configs import (
    broker_changes,
    check_own_configs,
    check_this_broker,
)
from wirebroker.coordinator.controller.configs.config_checks import (
    check_count,
    check_placeholders,
    check_request,
    invalid_request,
    resource_counts,
)
from wirebroker.coordinator.controller.configs.config_edits import (
    BROKER_CONFIGS,
    TOPIC_CONFIGS,
    WITHOUT_LISTS,
    Edit,
    changed_records,
    edited,
    replaced,
)
from wirebroker.coordinator.controller.features.feature_control import clear_elr_records
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, ResourceType
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

Result = dict[str, Any]


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
            edit = edited if is_incremental else replaced
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
                check_count(resource)
                check_placeholders(resource, config)
                if not resource.resource_name:
                    continue
                check_request(resource, counts, is_incremental=is_incremental)
                check_this_broker(resource.resource_name, node_id)
                before = image.config(ResourceType.BROKER, resource.resource_name)
                edit = edited if is_incremental else replaced
                checked = edit(resource, usable(before, config, is_default=False), BROKER_CONFIGS)
                check_own_configs(resource.resource_name, checked, image, config, node_id)
            except KafkaError as error:
                refused[index] = without_frames(error)
    return refused


def merged_results(
    resources: list[Any], outcomes: Mapping[int, KafkaError | None], others: Iterator[Any]
) -> Iterator[Any]:
    """Return the results of all resources of a request, in order.

    `outcomes` has errors, or None, of locally decided resources by index; `others` the rest.
    """
    for index, resource in enumerate(resources):
        yield altered(resource, outcomes[index]) if index in outcomes else next(others)


def _changes(
    resource: Any,
    edit: Edit,
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
            return broker_changes(resource, edit, image, config, node_id, is_direct=is_direct)
        case ResourceType.GROUP:
            return _group_changes(resource, edit, image, config)
        case ResourceType.CLIENT_METRICS:
            return _client_metrics_changes(resource, edit, image)
        case _:
            raise _unknown_type(resource)


def _unknown_type(resource: Any) -> KafkaError:
    return invalid_request(f"Unknown resource type {resource.resource_type}")


def _topic_changes(
    resource: Any, edit: Edit, image: ClusterImage, config: Config
) -> list[MetadataRecord]:
    name = resource.resource_name
    before = image.topic_config(name)
    after = edit(resource, before, TOPIC_CONFIGS)
    if not name:
        raise invalid_request("Topics have no default configs.")
    check_topic_name(name)
    check_topic_overrides(config, after)
    if name not in image.topics:
        raise KafkaError(
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"The topic '{name}' does not exist."
        )
    return changed_records(resource, before, after)


def _group_changes(
    resource: Any, edit: Edit, image: ClusterImage, config: Config
) -> list[MetadataRecord]:
    """Change the configs of a group, which need not exist."""
    before = image.config(ResourceType.GROUP, resource.resource_name)
    after = edit(resource, before, WITHOUT_LISTS)
    if not resource.resource_name:
        raise invalid_request("Default group resources are not allowed.")
    try:
        validate_group_configs(config, after)
    except ConfigError as error:
        raise KafkaError(ErrorCode.INVALID_CONFIG, str(error)) from None
    return changed_records(resource, before, after)


def _client_metrics_changes(resource: Any, edit: Edit, image: ClusterImage) -> list[MetadataRecord]:
    """Change a subscription of clients' metrics."""
    before = image.config(ResourceType.CLIENT_METRICS, resource.resource_name)
    after = edit(resource, before, WITHOUT_LISTS)
    subscription_of(resource.resource_name, after)
    return changed_records(resource, before, after)


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
