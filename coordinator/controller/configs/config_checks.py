"""The checks of a resource that a request wants to change, without the values it will have."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.config.sources.dynamic import placeholder_refusal
from wirebroker.coordinator.controller.configs.config_edits import DELETE, SET, SUBTRACT
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.config import Config

# More than any resource has.
MOST_CONFIGS = 10_000
_CHECKED_BY_CONTROLLER = {ResourceType.TOPIC, ResourceType.CLIENT_METRICS, ResourceType.GROUP}


def resource_counts(request: Any) -> Counter[tuple[int, str]]:
    """Return how often a request names each resource."""
    return Counter(
        (resource.resource_type, resource.resource_name) for resource in request.resources
    )


def check_request(resource: Any, counts: Counter[tuple[int, str]], *, is_incremental: bool) -> None:
    """Check a resource without its values.

    Raises:
        KafkaError: INVALID_REQUEST; UNKNOWN_SERVER_ERROR for an unknown operation on a topic,
            group or client metrics.
    """
    if counts[resource.resource_type, resource.resource_name] > 1:
        raise invalid_request("Each resource may appear only once.")
    check_shape(resource, is_incremental=is_incremental)


def check_shape(resource: Any, *, is_incremental: bool) -> None:
    """Refuse repeated configs, missing values and unknown operations.

    Raises:
        KafkaError: INVALID_REQUEST or UNKNOWN_SERVER_ERROR, as `check_request`.
    """
    check_count(resource)
    names = [entry.name for entry in resource.configs]
    if len(set(names)) != len(names):
        raise invalid_request("A config appears more than once.")
    nulls = [
        entry.name
        for entry in resource.configs
        if entry.value is None and not (is_incremental and entry.config_operation == DELETE)
    ]
    if nulls:
        raise invalid_request(f"These configs have no value: {', '.join(nulls)}")
    for entry in resource.configs if is_incremental else ():
        if not SET <= entry.config_operation <= SUBTRACT:
            if resource.resource_type in _CHECKED_BY_CONTROLLER:
                raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)  # as Kafka's controller
            raise invalid_request(f"Unknown operation {entry.config_operation} on {entry.name}.")


def check_count(resource: Any) -> None:
    """Refuse too many configs, since they are checked without a yield."""
    if len(resource.configs) > MOST_CONFIGS:
        raise invalid_request(
            f"More than {MOST_CONFIGS} configs of one resource; split the request."
        )


def check_placeholders(resource: Any, config: Config) -> None:
    """Refuse references to config providers: clients must not read the broker's files."""
    for entry in resource.configs:
        refusal = placeholder_refusal(entry.name, entry.value or "", config)
        if refusal is not None:
            raise invalid_request(refusal)


def invalid_request(message: str) -> KafkaError:
    """Return an INVALID_REQUEST error."""
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
