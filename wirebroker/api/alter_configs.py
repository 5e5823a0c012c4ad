"""IncrementalAlterConfigs: configs set, removed, and lists edited (KIP-339).

v0, v1 flexible. The rules are coordinator/config_control.py's.

Source: Kafka's ConfigAdminManager and ControllerApis.handleIncrementalAlterConfigs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import KafkaError

if TYPE_CHECKING:
    from wirebroker.broker import Broker


@handles(ApiKey.INCREMENTAL_ALTER_CONFIGS)
async def incremental_alter_configs(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Change configs; they are in force when the answer leaves."""
    del request
    try:
        responses = await broker.metadata.submit(broker.controller.alter_configs(body))
    except KafkaError as error:
        responses = [
            {
                "error_code": int(error.code),
                "error_message": error.message,
                "resource_type": resource.resource_type,
                "resource_name": resource.resource_name,
            }
            for resource in body.resources
        ]
    return {"responses": responses}
