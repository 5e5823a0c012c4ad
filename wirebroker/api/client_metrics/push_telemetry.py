"""PushTelemetry: the metrics of a client (KIP-714).

Source: Kafka's ClientMetricsManager.processPushTelemetryRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.client_metrics.client_instance import Push
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.request.request import Request


@handles(ApiKey.PUSH_TELEMETRY, permissions=(), cost=Cost.THREADS)
async def push_telemetry(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Store the metrics, unless the client may not push now."""
    client_metrics = broker.client_metrics
    assert client_metrics is not None, "served only with wirebroker.client.metrics"
    push = Push(body.subscription_id, body.compression_type, len(body.metrics), body.terminating)
    slices = Slices(broker.clock)
    client = await slices.run(client_metrics.begin_push(request, body.client_instance_id, push))
    if isinstance(client, ErrorCode):
        return {"error_code": client}
    if not body.metrics:
        return {"error_code": ErrorCode.NONE}
    data = bytes(body.metrics)
    return {
        "error_code": await client_metrics.read_push(client, body.compression_type, data, slices)
    }
