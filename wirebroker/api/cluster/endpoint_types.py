"""Which kind of nodes DescribeCluster is asked for: each kind describes its own (KIP-919).

Source: Kafka's AuthHelper.computeDescribeClusterResponse.
"""

from __future__ import annotations

from typing import Any, Final

from wirebroker.codecs.errors import ErrorCode

BROKERS: Final = 1
CONTROLLERS: Final = 2
_NAMES: Final = {BROKERS: "BROKER", CONTROLLERS: "CONTROLLER"}


def wrong_endpoint(asked: int, version: int, *, served: int) -> dict[str, Any]:
    """Return the body of an answer that describes nobody.

    Args:
        asked: The endpoint type in the request, another than `served`.
        version: Of the request; v0 knows no endpoint types.
        served: The endpoint type of who answers.
    """
    if asked in _NAMES:
        error = ErrorCode.MISMATCHED_ENDPOINT_TYPE
        # Kafka's words: its tools' tests compare them.
        message = (
            f"The request was sent to an endpoint of type {_NAMES[served]}, but we wanted an"
            f" endpoint of type {_NAMES[asked]}"
        )
    else:
        error = ErrorCode.UNSUPPORTED_ENDPOINT_TYPE
        message = f"There is no endpoint type {asked}."
    if version == 0:
        error = ErrorCode.INVALID_REQUEST
    return {"error_code": int(error), "error_message": message, "cluster_id": ""}
