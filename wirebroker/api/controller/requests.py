"""Requests that the active controller decides, on a controller listener, with their permissions.

Rules: coordinator/controller/.

Source: Kafka's ControllerApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.configs.altered_configs import alter_remaining_resources
from wirebroker.api.configs.runtime_loggers import change_loggers, names_loggers
from wirebroker.api.controller.large_responses import as_response
from wirebroker.api.controller.registry import handles
from wirebroker.base.addresses import host_of
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.controller import SERVED_KEYS, ControllerRequest
from wirebroker.coordinator.controller.security.token_control import not_allowed
from wirebroker.request.handlers import Cost
from wirebroker.request.permissions import (
    ALTER_CLUSTER,
    ALTER_CLUSTER_CONFIGS,
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
)
from wirebroker.request.session import ANONYMOUS

if TYPE_CHECKING:
    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.permissions import Permission
    from wirebroker.request.request import Request

_NEEDS: Final[dict[ApiKey, tuple[Permission, ...]]] = {
    ApiKey.CREATE_TOPICS: (CREATE_IN_CLUSTER, CREATE_TOPIC, DESCRIBE_TOPIC_CONFIGS),
    ApiKey.DELETE_TOPICS: (DESCRIBE_TOPIC, DELETE_TOPIC),
    ApiKey.ALTER_CONFIGS: (ALTER_TOPIC_CONFIGS, ALTER_CLUSTER_CONFIGS),
    ApiKey.CREATE_PARTITIONS: (ALTER_TOPIC,),
    ApiKey.ELECT_LEADERS: (ALTER_CLUSTER,),
    ApiKey.INCREMENTAL_ALTER_CONFIGS: (ALTER_TOPIC_CONFIGS, ALTER_CLUSTER_CONFIGS),
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: (ALTER_CLUSTER,),
    ApiKey.LIST_PARTITION_REASSIGNMENTS: (DESCRIBE_CLUSTER,),
    ApiKey.DESCRIBE_QUORUM: (DESCRIBE_CLUSTER,),
    ApiKey.CREATE_ACLS: (ALTER_CLUSTER,),
    ApiKey.DELETE_ACLS: (ALTER_CLUSTER,),
    ApiKey.UPDATE_FEATURES: (ALTER_CLUSTER,),
    ApiKey.UNREGISTER_BROKER: (ALTER_CLUSTER,),
    ApiKey.UNREGISTER_CONTROLLER: (ALTER_CLUSTER,),
    ApiKey.ADD_RAFT_VOTER: (ALTER_CLUSTER,),
    ApiKey.REMOVE_RAFT_VOTER: (ALTER_CLUSTER,),
    ApiKey.ALTER_CLIENT_QUOTAS: (ALTER_CLUSTER_CONFIGS,),
    ApiKey.ALTER_USER_SCRAM_CREDENTIALS: (ALTER_CLUSTER,),
    ApiKey.CREATE_DELEGATION_TOKEN: (CREATE_TOKENS_OF_USER,),
    # The token decides.
    ApiKey.RENEW_DELEGATION_TOKEN: (),
    ApiKey.EXPIRE_DELEGATION_TOKEN: (),
}
_TOKEN_KEYS: Final = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)
# For requests of brokers.
_BROKER_KEYS: Final = (CLUSTER_ACTION,)


async def incremental_alter_configs(
    controller: QuorumController, request: Request, body: Any
) -> dict[str, Any]:
    """Change loggers of this node here, and everything else by `carry_out`.

    If the client may not alter loggers, the controller's rules refuse them.
    """
    authorization = controller.authorization
    is_allowed = authorization is None or authorization.access_of(request).may(
        ALTER_CLUSTER_CONFIGS, logs_denied=False
    )
    if not is_allowed or not names_loggers(body):
        return await carry_out(controller, request, body)
    slices = Slices(controller.clock)
    outcomes = await slices.run(change_loggers(body, controller.rules.node_id))

    async def alter() -> list[Any]:
        responses: list[Any] = (await carry_out(controller, request, body))["responses"]
        return responses

    return await alter_remaining_resources(body, outcomes, alter, slices)


async def carry_out(controller: QuorumController, request: Request, body: Any) -> dict[str, Any]:
    """Respond when the decision is committed, or with the refusal."""
    session = request.session
    asker = session.principal.name, request.client_id or ""
    client = (session.principal, host_of(session.peer))
    if request.key in _TOKEN_KEYS and session.principal is ANONYMOUS:
        return not_allowed(request.key, body, session.principal)
    controller_request = ControllerRequest(
        request.key, request.version, body, asker, client, is_direct=True
    )
    return as_response(await controller.handle(controller_request))


for _key in sorted({*SERVED_KEYS, ApiKey.DESCRIBE_QUORUM}):
    _handler = incremental_alter_configs if _key is ApiKey.INCREMENTAL_ALTER_CONFIGS else carry_out
    handles(_key, permissions=_NEEDS.get(_key, _BROKER_KEYS), cost=Cost.CONTROLLER)(_handler)
