"""Enforcement of quotas for requests and connections."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.api.broker import Broker
    from wirebroker.coordinator.quotas.quota_entity import ClientQuotas
    from wirebroker.net.connection_table import ConnectionTable
    from wirebroker.net.dispatch import Dispatcher


def enforce(broker: Broker, dispatcher: Dispatcher, table: ConnectionTable) -> None:
    """Apply the current and later quotas to requests and connections."""

    def use(quotas: ClientQuotas) -> None:
        dispatcher.quotas = broker.quotas if broker.quotas.has_quotas else None
        table.quotas.use_rates(quotas)

    rates = broker.quotas.by_name()
    table.metrics.throttle_ms = lambda: {name: quota.throttled_ms for name, quota in rates.items()}
    table.metrics.throttled = lambda: {name: quota.throttled_count for name, quota in rates.items()}
    broker.quota_users.append(use)
    broker.use_quotas(broker.metadata.image.client_quotas)
