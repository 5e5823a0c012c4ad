"""GetTelemetrySubscriptions: the metrics that the client pushes, and how often (KIP-714).

Source: Kafka's ClientMetricsManager.processGetTelemetrySubscriptionRequest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.api.registry import handles
from wirebroker.base.clock import begun
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.request.request import Request

# The best first.
_COMPRESSION_TYPES: Final = [Codec.ZSTD, Codec.LZ4, Codec.GZIP, Codec.SNAPPY]


@handles(ApiKey.GET_TELEMETRY_SUBSCRIPTIONS, permissions=(), cost=Cost.SLICES)
def get_telemetry_subscriptions(
    broker: Broker, request: Request, body: Any
) -> dict[str, Any] | Awaitable[dict[str, Any]]:
    """Return the client's subscription, and its id if it is new."""
    return begun(_subscription(broker, request, body), broker.clock)


def _subscription(broker: Broker, request: Request, body: Any) -> Steps[dict[str, Any]]:
    client_metrics = broker.client_metrics
    assert client_metrics is not None, "served only with wirebroker.client.metrics"
    client = yield from client_metrics.get(request, body.client_instance_id)
    if isinstance(client, ErrorCode):
        return {"error_code": client}
    subscription = client.subscription
    return {
        "client_instance_id": client.instance_id,
        "subscription_id": subscription.subscription_id,
        "accepted_compression_types": _COMPRESSION_TYPES,
        "push_interval_ms": subscription.interval_ms,
        "telemetry_max_bytes": client_metrics.max_bytes,
        "delta_temporality": True,
        "requested_metrics": list(subscription.metrics),
    }
