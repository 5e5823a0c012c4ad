"""Rule of DescribeConfigs.

Source: Kafka's ConfigHelper.handleDescribeConfigsRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.authorization.ruling import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    STEP,
    TOPIC_DENIED,
    Fields,
    denied_resource,
)
from wirebroker.codecs.permissions import (
    DESCRIBE_CLUSTER_CONFIGS,
    DESCRIBE_GROUP_CONFIGS,
    DESCRIBE_TOPIC_CONFIGS,
    Permission,
)
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.authorization.access import RequestAccess
    from wirebroker.base.clock import Steps


def denied_configs(access: RequestAccess, body: Any) -> Steps[list[Fields]]:
    """Remove the denied resources from a request; return their results.

    An unknown resource type fails the whole request, so nothing is checked then.
    """
    if any(resource.resource_type not in ResourceType.ALL for resource in body.resources):
        return []
    allowed: list[Any] = []
    failures: list[Fields] = []
    for count, resource in enumerate(body.resources, 1):
        if count % STEP == 0:
            yield
        need, error, name = _configs_need(resource)
        if access.may(need, *name):
            allowed.append(resource)
        else:
            failures.append({**denied_resource(resource, error), "configs": []})
    body.resources = allowed
    return failures


def _configs_need(resource: Any) -> tuple[Permission, Any, tuple[str, ...]]:
    if resource.resource_type == ResourceType.TOPIC:
        return DESCRIBE_TOPIC_CONFIGS, TOPIC_DENIED, (resource.resource_name,)
    if resource.resource_type == ResourceType.GROUP:
        return DESCRIBE_GROUP_CONFIGS, GROUP_DENIED, (resource.resource_name,)
    return DESCRIBE_CLUSTER_CONFIGS, CLUSTER_DENIED, ()
