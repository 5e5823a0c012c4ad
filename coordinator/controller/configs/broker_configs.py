"""Changes of dynamic configs of brokers.

Source: Kafka's ConfigAdminManager (checks of the receiving broker) and ConfigurationControlManager
with ControllerConfigurationValidator (the controller's).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.dynamic import check_change, usable
from wirebroker.coordinator.controller.configs.config_checks import (
    check_placeholders,
    check_shape,
    invalid_request,
)
from wirebroker.coordinator.controller.configs.config_edits import (
    BROKER_CONFIGS,
    Edit,
    config_names,
    edited,
    replaced,
)
from wirebroker.coordinator.controller.features.feature_control import (
    MIN_INSYNC_REPLICAS,
    has_cordoned_directories,
    has_eligible_leader_replicas,
)
from wirebroker.coordinator.controller.image.cluster_image import (
    ClusterImage,
    ResourceType,
    config_record,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.metadata_records import MetadataRecord
    from wirebroker.config import Config

_MOST_DIGITS = 10


def broker_changes(
    resource: Any,
    edit: Edit,
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
    check_placeholders(resource, config)
    before = image.config(ResourceType.BROKER, name)
    after = edit(resource, before, BROKER_CONFIGS)
    # Ignore stored values that are unusable here.
    checked = edit(resource, usable(before, config, is_default=not name), BROKER_CONFIGS)
    if name in {"", str(node_id)}:
        check_own_configs(name, checked, image, config, node_id)
    else:
        # That broker has checked them against its settings.
        refused = checked.keys() - usable(checked, config, is_default=False).keys()
        if refused:
            raise invalid_request(f"Broker {name} cannot use {', '.join(sorted(refused))}.")
    named = config_names(resource, before, after)
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


def check_own_configs(
    name: str, checked: Mapping[str, str], image: ClusterImage, config: Config, node_id: int
) -> None:
    """Check the configs that this broker would have.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
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
        raise invalid_request(str(error)) from None


def own_configs_after(
    resource: Any, image: ClusterImage, *, is_incremental: bool
) -> dict[str, str] | None:
    """Return the configs of a broker after a change; None if the change is invalid."""
    edit = edited if is_incremental else replaced
    try:
        check_shape(resource, is_incremental=is_incremental)
        before = image.config(ResourceType.BROKER, resource.resource_name)
        return edit(resource, before, BROKER_CONFIGS)
    except KafkaError:
        return None


def _check_registered(name: str, image: ClusterImage, node_id: int) -> None:
    if not (name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS):
        raise invalid_request(f"A broker id must be an integer, not '{name}'.")
    if int(name) not in {node_id, *image.brokers, *image.controllers}:
        raise KafkaError(ErrorCode.BROKER_ID_NOT_REGISTERED, f"No node with id {name} found.")


def check_this_broker(name: str, node_id: int) -> None:
    """Refuse a resource that is another broker.

    Raises:
        KafkaError: INVALID_REQUEST.
    """
    try:
        broker_id = int(name)
    except ValueError:
        raise invalid_request(f"A broker id must be an integer, not '{name}'.") from None
    if broker_id != node_id:
        raise invalid_request(
            f"This is node {node_id}; send requests for node {name} to that node."
        )
