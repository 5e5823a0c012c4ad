"""How much of each quota is used.

Each broker applies quotas separately, so the use is that of the busiest broker. A default quota
applies to each of its users separately, so the use is that of the busiest user.

Source: the order in which quotas apply: KIP-55, KIP-546, KIP-612.
"""

from __future__ import annotations

from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.client_metrics.broker_clients import ADDRESS
from wirebroker.coordinator.quotas.quota_entity import (
    CLIENT_ID,
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    IP,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    USER,
    entity_of,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from wirebroker.console.client_metrics.broker_clients import BrokerClients, ClientMeter
    from wirebroker.coordinator.quotas.quota_entity import QuotaEntity

_KEYS: Final = {
    "Produce": PRODUCER_BYTE_RATE,
    "Fetch": CONSUMER_BYTE_RATE,
    "Request": REQUEST_PERCENTAGE,
    "ControllerMutation": CONTROLLER_MUTATION_RATE,
    ADDRESS: CONNECTION_CREATION_RATE,
}


class QuotaUse(NamedTuple):
    """The greatest use of a quota.

    Attributes:
        rate: In the unit of the quota.
        broker_id: Where it is used.
        who: The user, client id or address, for quotas with a default; else empty.
        throttle_ms: The longest throttle time of its clients on any broker; None if unknown.
        client_count: The users, client ids or addresses that it limits, counted on each broker.
    """

    rate: float
    broker_id: int
    who: str
    throttle_ms: float | None
    client_count: int


def uses_of(
    quotas: Mapping[QuotaEntity, Collection[str]], clients: Mapping[int, BrokerClients]
) -> dict[tuple[QuotaEntity, str], QuotaUse]:
    """Return the use of quotas by entity and key, without unused quotas.

    `quotas` has the keys of each entity.
    """
    entities = {_normalized(entity): entity for entity in quotas}
    uses: dict[tuple[QuotaEntity, str], QuotaUse] = {}
    for broker_id, of_broker in clients.items():
        for meter in of_broker.meters:
            key = _KEYS.get(meter.kind)
            if key is None:
                continue
            for candidate in _candidates(meter):
                entity = entities.get(_normalized(candidate), candidate)
                if key in quotas.get(entity, ()):
                    use = _use(entity, meter, broker_id)
                    uses[entity, key] = _greater(uses.get((entity, key)), use)
                    break
    return uses


def _candidates(meter: ClientMeter) -> Iterator[QuotaEntity]:
    """Yield the entities whose quota the meter may measure; the first with a quota applies."""
    users = (meter.user, None) if meter.user else ()
    client_ids = (meter.client_id, None) if meter.client_id else ()
    if meter.kind == ADDRESS:
        yield from (entity_of([(IP, address)]) for address in (meter.address, None))
    elif users and client_ids:
        for user in users:
            for client_id in client_ids:
                yield entity_of([(USER, user), (CLIENT_ID, client_id)])
    elif users:
        yield from (entity_of([(USER, user)]) for user in users)
    else:
        yield from (entity_of([(CLIENT_ID, client_id)]) for client_id in client_ids)


def _normalized(entity: QuotaEntity) -> QuotaEntity:
    """Return the entity with its IP address in the usual form: IPv6 has several."""
    return entity_of((kind, _normal_ip(name) if kind == IP else name) for kind, name in entity)


def _normal_ip(text: str | None) -> str | None:
    """Return an IP address in the usual form; other texts are unchanged."""
    if text is None:
        return None
    try:
        return str(ip_address(text))
    except ValueError:  # a host name
        return text


def _use(entity: QuotaEntity, meter: ClientMeter, broker_id: int) -> QuotaUse:
    names = {USER: meter.user, CLIENT_ID: meter.client_id, IP: meter.address}
    who = ", ".join(names[kind] for kind, name in entity if name is None)
    return QuotaUse(meter.rate, broker_id, who, meter.throttle_ms, 1)


def _greater(first: QuotaUse | None, second: QuotaUse) -> QuotaUse:
    if first is None:
        return second
    greater = first if first.rate >= second.rate else second
    known = [use.throttle_ms for use in (first, second) if use.throttle_ms is not None]
    return greater._replace(
        throttle_ms=max(known, default=None), client_count=first.client_count + second.client_count
    )
