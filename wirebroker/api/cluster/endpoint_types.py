"""Endpoint types of DescribeCluster (KIP-919).

Source: Kafka's AuthHelper.computeDescribeClusterResponse.
"""

from __future__ import annotations

from typing import Any, Final

from wirebroker.codecs.errors import ErrorCode

BROKERS: Final = 1
CONTROLLERS: Final = 2
_NAMES: Final = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def wrong_endpoint(requested: int, version: int, *, served: int) -> dict[str, Any]:
    """Return the error response for another endpoint type than `served`; version 0 has no types."""
    if requested in _NAMES:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        # Kafka's text; its tools' tests compare it.
        message = (
            f"The request was sent to an endpoint of type {_NAMES[served]}, but we wanted an"
            f" endpoint of type {_NAMES[requested]}"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"Unknown endpoint type {requested}."
    if version == 0:
        error = ErrorCode.INVALID_REQUEST
    return {"error_code": int(error), "error_message": message, "cluster_id": ""}
