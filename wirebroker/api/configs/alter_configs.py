"""AlterConfigs and IncrementalAlterConfigs (KIP-133, KIP-339).

AlterConfigs v0, v1, v2 flexible, replaces all configs of a resource. IncrementalAlterConfigs v0, v1
flexible, sets and deletes configs, and edits lists. Rules:
coordinator/controller/configs/config_control.py; for loggers, runtime_loggers.py.

Source: Kafka's ConfigAdminManager and ControllerApis.handleIncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.configs.altered_configs import alter_remaining_resources
from wirebroker.api.configs.config_trial import may_alter, refuse_unusable_keys
from wirebroker.api.configs.runtime_loggers import change_loggers, names_loggers
from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwards
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.configs.config_control import locally_refused_configs

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.codecs.errors import KafkaError
    from wirebroker.request.request import Request


@forwards(ApiKey.ALTER_CONFIGS)
async def alter_configs(broker: Broker, request: Request, body: Any) -> Any:
    """Replace the configs of each resource."""
    return await _altered(broker, request, body, is_incremental=False)


@forwards(ApiKey.INCREMENTAL_ALTER_CONFIGS)
async def incremental_alter_configs(broker: Broker, request: Request, body: Any) -> Any:
    """Change single configs."""
    return await _altered(broker, request, body, is_incremental=True)


async def _altered(broker: Broker, request: Request, body: Any, *, is_incremental: bool) -> Any:
    """Refuse other brokers' configs and unusable keys; forward the rest."""
    refused = await refuse_unusable_keys(broker, request, body, is_incremental=is_incremental)
    slices = Slices(broker.clock)
    refused |= await slices.run(
        locally_refused_configs(
            body,
            broker.metadata.image,
            broker.config,
            node_id=broker.node_id,
            is_incremental=is_incremental,
        )
    )
    outcomes: dict[int, KafkaError | None] = {**refused}
    if is_incremental and names_loggers(body) and may_alter(broker, request):
        outcomes |= await slices.run(change_loggers(body, broker.node_id))
    if not outcomes:
        return await forward(broker, request, body)

    async def alter() -> list[Any]:
        responses: list[Any] = (await forward(broker, request, body))["responses"]
        return responses

    return await alter_remaining_resources(body, outcomes, alter, slices)
