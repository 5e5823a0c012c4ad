"""Rules of requests that the controller serves.

A client's request comes from its broker, in this process or in an Envelope with its principal, or
over a controller listener. It is checked only here.

Source: Kafka's ControllerApis.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any, Final

from wirebroker.authorization.ruling import (
    CLUSTER_DENIED,
    GROUP_DENIED,
    MESSAGES,
    SERVED,
    STEP,
    TOPIC_DENIED,
    CheckedRequest,
    Fields,
    Ruling,
    adding,
    cluster_denial,
    cluster_operations,
    denied,
    denied_resource,
    kept,
    of_cluster,
    refused,
    split,
    told,
    with_field,
)
from wirebroker.codecs.acls import Operation, Resource
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.delegation_token import principal_text
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.permissions import (
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
    ALTER_GROUP_CONFIGS,
    ALTER_TOPIC,
    ALTER_TOPIC_CONFIGS,
    CLUSTER_ACTION,
    CREATE_IN_CLUSTER,
    CREATE_TOKENS_OF_USER,
    CREATE_TOPIC,
    DELETE_TOPIC,
    DESCRIBE_CLUSTER,
    DESCRIBE_TOPIC,
    DESCRIBE_TOPIC_CONFIGS,
    Permission,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS, refusal
from wirebroker.coordinator.controller.image.cluster_image import ResourceType
from wirebroker.coordinator.controller.security.token_control import denied_token, owner_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.authorization.ruling import Rule
    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.controller.requests.request import ControllerRequest

_METADATA_TOPIC: Final = "__cluster_metadata"
# Require DESCRIBE_CONFIGS of the topic.
_OF_CONFIGS: Final = frozenset({"num_partitions", "replication_factor", "configs"})
_DELETE_IN_CLUSTER: Final = Permission(Operation.DELETE, Resource.CLUSTER)


def create_topics(request: CheckedRequest) -> Steps[Ruling]:
    """Require CREATE; return configs only with DESCRIBE_CONFIGS."""
    access, body = request.access, request.body
    counts = Counter[str](topic.name for topic in body.topics)
    is_open = access.may(CREATE_IN_CLUSTER, logs_denied=False)
    # The controller refuses duplicates and the metadata topic.
    checked_names = [
        name for name, count in counts.items() if count == 1 and name != _METADATA_TOPIC
    ]
    denied_names: set[str] = set()
    without_configs: set[str] = set()
    for count, name in enumerate(checked_names, 1):
        if not is_open and not access.may(CREATE_TOPIC, name):
            denied_names.add(name)
        if not access.may(DESCRIBE_TOPIC_CONFIGS, name, logs_denied=False):
            without_configs.add(name)
        if count % STEP == 0:
            yield
    body.topics = [topic for topic in body.topics if topic.name not in denied_names]
    failures = yield from told(
        denied_names, lambda name: _denied_topic(name, error_message="Authorization failed.")
    )

    def merge(answer: Mapping[str, Any]) -> Steps[Mapping[str, Any]]:
        topics: list[Mapping[str, Any]] = []
        for count, topic in enumerate(answer["topics"], 1):
            topics.append(_without_configs(topic) if topic["name"] in without_configs else topic)
            if count % STEP == 0:
                yield
        return with_field(answer, "topics", [*topics, *failures])

    return Ruling(merge=merge)


def _denied_topic(name: str, *, error_message: str | None) -> Fields:
    return {"name": name, "error_code": int(TOPIC_DENIED), "error_message": error_message}


def _without_configs(topic: Fields) -> Fields:
    if topic.get("error_code"):
        return topic
    visible = {name: value for name, value in topic.items() if name not in _OF_CONFIGS}
    return {**visible, "topic_config_error_code": int(TOPIC_DENIED)}


def delete_topics(request: CheckedRequest) -> Steps[Ruling]:
    """Require DELETE; do not reveal topics that may not be described."""
    access, body = request.access, request.body
    if access.may(_DELETE_IN_CLUSTER, logs_denied=False):
        return SERVED
    failures: list[Fields] = []

    def is_deletable(name: str | None, topic_id: bytes) -> bool:
        topic = request.image.topics_by_id.get(topic_id)
        if topic_id != ZERO_UUID and (name is not None or topic is None):
            return True  # invalid: the controller refuses it
        topic_name = name if topic is None else topic.name
        if topic_name is None:
            return True
        if not access.may(DESCRIBE_TOPIC, topic_name):
            failures.append(_not_deleted(None if name is None else topic_name, topic_id))
            return False
        exists = topic is not None or topic_name in request.image.topics
        if exists and not access.may(DELETE_TOPIC, topic_name):
            failures.append(_not_deleted(topic_name, topic_id))
            return False
        return True

    body.topic_names = yield from kept(body.topic_names, lambda name: is_deletable(name, ZERO_UUID))
    body.topics = yield from kept(
        body.topics, lambda topic: is_deletable(topic.name, topic.topic_id)
    )
    return adding("responses", failures)


def _not_deleted(name: str | None, topic_id: bytes) -> Fields:
    return {
        "name": name,
        "topic_id": topic_id,
        "error_code": int(TOPIC_DENIED),
        "error_message": MESSAGES[TOPIC_DENIED],
    }


def create_partitions(request: CheckedRequest) -> Steps[Ruling]:
    """Require ALTER of each topic."""
    body = request.body
    body.topics, denied_topics = yield from split(
        request.access, ALTER_TOPIC, body.topics, lambda topic: str(topic.name)
    )
    failures = yield from told(
        denied_topics, lambda topic: _denied_topic(topic.name, error_message=None)
    )
    return adding("results", failures)


def alter_configs(request: CheckedRequest) -> Steps[Ruling]:
    """Require ALTER_CONFIGS of each resource."""
    body = request.body
    allowed: list[Any] = []
    failures: list[Fields] = []
    for count, resource in enumerate(body.resources, 1):
        if count % STEP == 0:
            yield
        need, error, name = _alter_need(resource, request.access.key)
        if need is None or request.access.may(need, *name):
            allowed.append(resource)
            continue
        failure = denied_resource(resource, error)
        if resource.resource_type in {ResourceType.BROKER, ResourceType.BROKER_LOGGER}:
            failure["error_message"] = None  # as in Kafka
        failures.append(failure)
    if not failures:
        return SERVED
    body.resources = allowed
    return adding("responses", failures)


def _alter_need(resource: Any, key: ApiKey) -> tuple[Permission | None, Any, tuple[str, ...]]:
    kind, name = resource.resource_type, resource.resource_name
    if kind == ResourceType.TOPIC:
        return ALTER_TOPIC_CONFIGS, TOPIC_DENIED, (name,)
    if kind == ResourceType.GROUP:
        return ALTER_GROUP_CONFIGS, GROUP_DENIED, (name,)
    if kind in {ResourceType.BROKER, ResourceType.CLIENT_METRICS}:
        return ALTER_CLUSTER_CONFIGS, CLUSTER_DENIED, ()
    if kind == ResourceType.BROKER_LOGGER and key is ApiKey.INCREMENTAL_ALTER_CONFIGS:
        return ALTER_CLUSTER_CONFIGS, CLUSTER_DENIED, ()
    return None, None, ()  # the controller refuses it


def create_token(request: CheckedRequest) -> Ruling:
    """Require CREATE_TOKENS for another owner; the broker refuses clients with tokens."""
    principal = request.access.principal
    owner = principal_text(owner_of(request.body, principal))
    if principal.is_by_token or owner == principal_text(principal):
        return SERVED
    if request.access.may(CREATE_TOKENS_OF_USER, owner):
        return SERVED
    return Ruling(
        denied_token(request.body, principal, ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
    )


def describe_cluster(request: CheckedRequest) -> Ruling:
    """Require ALTER, unlike a broker; return the client's operations on the cluster."""
    if not request.access.may(ALTER_CLUSTER):
        error = cluster_denial(request.access)
        return refused(error, error_message=MESSAGES.get(error))
    return cluster_operations(request)


_RULES: Final[dict[ApiKey, Rule]] = {
    ApiKey.CREATE_TOPICS: create_topics,
    ApiKey.DELETE_TOPICS: delete_topics,
    ApiKey.CREATE_PARTITIONS: create_partitions,
    ApiKey.ALTER_CONFIGS: alter_configs,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: alter_configs,
    ApiKey.CREATE_DELEGATION_TOKEN: create_token,
}


LISTENER_RULES: Final[dict[ApiKey, Rule]] = {
    ApiKey.FETCH: of_cluster(CLUSTER_ACTION),
    ApiKey.ENVELOPE: of_cluster(CLUSTER_ACTION),
    ApiKey.DESCRIBE_CLUSTER: describe_cluster,
    ApiKey.FETCH_SNAPSHOT: of_cluster(CLUSTER_ACTION),
    ApiKey.VOTE: of_cluster(CLUSTER_ACTION),
    ApiKey.BEGIN_QUORUM_EPOCH: of_cluster(CLUSTER_ACTION),
    ApiKey.END_QUORUM_EPOCH: of_cluster(CLUSTER_ACTION),
    ApiKey.UPDATE_RAFT_VOTER: of_cluster(CLUSTER_ACTION),
    ApiKey.DESCRIBE_ACLS: of_cluster(DESCRIBE_CLUSTER, error_message=MESSAGES[CLUSTER_DENIED]),
}


def rule_on(request: ControllerRequest, client_request: CheckedRequest) -> Steps[Ruling]:
    """Return the ruling on a request to the controller."""
    rule = _RULES.get(request.key)
    if rule is not None:
        ruling = rule(client_request)
        return ruling if isinstance(ruling, Ruling) else (yield from ruling)
    permissions = DECLARED_OPERATIONS[request.key].permissions
    if not permissions:
        return SERVED  # the operation decides
    (permission,) = permissions
    if client_request.access.may(permission):
        return SERVED
    error = cluster_denial(client_request.access)
    return Ruling((yield from refusal(request, denied(error))))
