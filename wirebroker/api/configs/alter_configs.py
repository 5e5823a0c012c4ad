"""AlterConfigs and IncrementalAlterConfigs (KIP-133, KIP-339).

Rules: coordinator/controller/configs/config_control.py; for loggers, runtime_loggers.py.

Source: Kafka's ConfigAdminManager and ControllerApis.handleIncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.configs.altered_configs import alter_remaining_resources
from wirebroker.api.configs.runtime_loggers import change_loggers, names_loggers
from wirebroker.api.forwarding import forward
from wirebroker.api.registry import forwards
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.permissions import ALTER_CLUSTER_CONFIGS
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.dynamic import usable
from wirebroker.coordinator.controller.configs.broker_configs import own_configs_after
from wirebroker.coordinator.controller.configs.config_control import locally_refused_configs
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@forwards(ApiKey.ALTER_CONFIGS)
async def alter_configs(broker: Broker, request: Request, body: Any) -> Any:
    """Replace the configs of each resource."""
    return await _altered(broker, request, body, is_incremental=False)


@forwards(ApiKey.INCREMENTAL_ALTER_CONFIGS)
async def incremental_alter_configs(broker: Broker, request: Request, body: Any) -> Any:
    """Set and delete configs, and edit lists."""
    return await _altered(broker, request, body, is_incremental=True)


async def _altered(broker: Broker, request: Request, body: Any, *, is_incremental: bool) -> Any:
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


# Part of the names of key configs: ssl.…, listener.name.<listener>.ssl.….
_KEY_STORE_PREFIX = "ssl."


async def refuse_unusable_keys(
    broker: Broker, request: Request, body: Any, *, is_incremental: bool
) -> dict[int, KafkaError]:
    """Return errors for unusable keys and certificates, by the resources' positions."""
    refused: dict[int, KafkaError] = {}
    slices = Slices(broker.clock)
    own_name = str(broker.node_id)
    for index, resource in enumerate(body.resources):
        await slices.turn()
        if (
            resource.resource_type == ResourceType.BROKER
            and resource.resource_name == own_name
            and any(_KEY_STORE_PREFIX in entry.name for entry in resource.configs)
            and may_alter(broker, request)
        ):
            try:
                await _check_keys(broker, resource, is_incremental=is_incremental)
            except ConfigError as error:
                refused[index] = KafkaError(
                    ErrorCode.INVALID_REQUEST, broker.config.redacted(str(error))
                )
    return refused


def may_alter(broker: Broker, request: Request) -> bool:
    """Return whether a client may alter configs; the controller refuses others."""
    authorization = broker.authorization
    if authorization is None:
        return True
    return authorization.access_of(request).may(ALTER_CLUSTER_CONFIGS, logs_denied=False)


async def _check_keys(broker: Broker, resource: Any, *, is_incremental: bool) -> None:
    image = broker.metadata.image
    own = own_configs_after(resource, image, is_incremental=is_incremental)
    if own is None:
        return
    try:
        config = broker.config.with_dynamic(
            cluster_wide=usable(
                image.config(ResourceType.BROKER, ""), broker.config, is_default=True
            ),
            this_broker=usable(own, broker.config, is_default=False),
        )
    except ConfigError:
        return  # the controller reports it
    for try_config in broker.config_trials:
        await try_config(config)
