"""UpdateFeatures: which features the cluster goes by (KIP-584).

v0, v1 upgrade types and validation only (KIP-778), v2 no results per feature (KIP-1022).

Source: Kafka's QuorumController.updateFeatures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import Request, handles
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.broker import Broker

_LAST_RESULTS_VERSION = 1


@handles(ApiKey.UPDATE_FEATURES)
async def update_features(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Change feature levels; they are in force when the answer leaves."""
    try:
        await broker.metadata.submit(broker.controller.update_features(body))
    except KafkaError as error:
        return {
            "error_code": error.code,
            "error_message": "No feature was updated, since one could not be: "
            + (error.message or error.code.name),
        }
    response: dict[str, Any] = {"error_code": ErrorCode.NONE, "error_message": None}
    if request.version <= _LAST_RESULTS_VERSION:
        response["results"] = [
            {"feature": each.feature, "error_code": ErrorCode.NONE, "error_message": "NONE"}
            for each in body.feature_updates
        ]
    return response
