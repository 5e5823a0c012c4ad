"""Permissions that a handler's requests may require; the resources' names are in the body.

Source: Kafka's ResourceType and AclOperation; KafkaApis and ControllerApis.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from wirebroker.codecs.acls import Operation, Resource


class Permission(NamedTuple):
    """An operation on a kind of resource."""

    operation: Operation
    resource: Resource


READ_TOPIC: Final = Permission(Operation.READ, Resource.TOPIC)
WRITE_TOPIC: Final = Permission(Operation.WRITE, Resource.TOPIC)
CREATE_TOPIC: Final = Permission(Operation.CREATE, Resource.TOPIC)
DELETE_TOPIC: Final = Permission(Operation.DELETE, Resource.TOPIC)
ALTER_TOPIC: Final = Permission(Operation.ALTER, Resource.TOPIC)
DESCRIBE_TOPIC: Final = Permission(Operation.DESCRIBE, Resource.TOPIC)
DESCRIBE_TOPIC_CONFIGS: Final = Permission(Operation.DESCRIBE_CONFIGS, Resource.TOPIC)
ALTER_TOPIC_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, Resource.TOPIC)
READ_GROUP: Final = Permission(Operation.READ, Resource.GROUP)
DELETE_GROUP: Final = Permission(Operation.DELETE, Resource.GROUP)
DESCRIBE_GROUP: Final = Permission(Operation.DESCRIBE, Resource.GROUP)
DESCRIBE_GROUP_CONFIGS: Final = Permission(Operation.DESCRIBE_CONFIGS, Resource.GROUP)
ALTER_GROUP_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, Resource.GROUP)
WRITE_TRANSACTIONAL_ID: Final = Permission(Operation.WRITE, Resource.TRANSACTIONAL_ID)
DESCRIBE_TRANSACTIONAL_ID: Final = Permission(Operation.DESCRIBE, Resource.TRANSACTIONAL_ID)
CREATE_IN_CLUSTER: Final = Permission(Operation.CREATE, Resource.CLUSTER)
ALTER_CLUSTER: Final = Permission(Operation.ALTER, Resource.CLUSTER)
DESCRIBE_CLUSTER: Final = Permission(Operation.DESCRIBE, Resource.CLUSTER)
CLUSTER_ACTION: Final = Permission(Operation.CLUSTER_ACTION, Resource.CLUSTER)
DESCRIBE_CLUSTER_CONFIGS: Final = Permission(Operation.DESCRIBE_CONFIGS, Resource.CLUSTER)
ALTER_CLUSTER_CONFIGS: Final = Permission(Operation.ALTER_CONFIGS, Resource.CLUSTER)
DESCRIBE_DELEGATION_TOKEN: Final = Permission(Operation.DESCRIBE, Resource.DELEGATION_TOKEN)
CREATE_TOKENS_OF_USER: Final = Permission(Operation.CREATE_TOKENS, Resource.USER)
DESCRIBE_TOKENS_OF_USER: Final = Permission(Operation.DESCRIBE_TOKENS, Resource.USER)
IDEMPOTENT_WRITE: Final = Permission(Operation.IDEMPOTENT_WRITE, Resource.CLUSTER)
