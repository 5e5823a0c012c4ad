"""Requests that the active controller decides, on a controller listener.

Their declarations and rules: coordinator/controller/.

Source: Kafka's ControllerApis.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.configs.altered_configs import alter_remaining_resources
from wirebroker.api.configs.runtime_loggers import change_loggers, names_loggers
from wirebroker.api.controller.registry import handles
from wirebroker.api.forwarding import requester_of
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import ALTER_CLUSTER_CONFIGS
from wirebroker.coordinator.controller.controller import DECLARED_OPERATIONS
from wirebroker.coordinator.controller.requests.request import ControllerRequest
from wirebroker.coordinator.controller.security.token_control import not_allowed
from wirebroker.request.handlers import Cost
from wirebroker.request.request import LargeResponse
from wirebroker.request.session import ANONYMOUS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.quorum.controller.quorum_controller import QuorumController
    from wirebroker.request.request import Request

_TOKEN_KEYS: Final = frozenset(
    {
        ApiKey.CREATE_DELEGATION_TOKEN,
        ApiKey.RENEW_DELEGATION_TOKEN,
        ApiKey.EXPIRE_DELEGATION_TOKEN,
    }
)


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
    principal = request.session.principal
    if request.key in _TOKEN_KEYS and principal is ANONYMOUS:
        return not_allowed(request.key, body, principal)
    requester = requester_of(request)
    controller_request = ControllerRequest(
        request.key, request.version, body, requester, is_direct=True
    )
    answer = await controller.handle(controller_request)
    return LargeResponse(answer) if elements_of(answer) > 1 else answer


def elements_of(answer: Mapping[str, Any]) -> int:
    """Return the number of elements in a response's arrays; a thread encodes several."""
    arrays: list[list[Any]] = [value for value in answer.values() if isinstance(value, list)]
    return sum(map(len, arrays))


for _key, _declaration in sorted(DECLARED_OPERATIONS.items()):
    _handler = incremental_alter_configs if _key is ApiKey.INCREMENTAL_ALTER_CONFIGS else carry_out
    handles(_key, permissions=_declaration.permissions, cost=Cost.CONTROLLER)(_handler)
