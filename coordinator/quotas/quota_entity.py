"""Quota entities, and the choice of the quota that applies to a client.

An entity has a user, a client id, both, or an address; None is the default of its kind. The most
specific quota applies:

    user + client id, user + default client, user,
    default user + client id, default user + default client, default user,
    client id, default client

Source: KIP-13, KIP-55, KIP-546, KIP-612; Kafka's ClientQuotaManager, ConnectionQuotas.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.coordinator.quotas.addresses import normal_address

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

USER: Final = "user"
CLIENT_ID: Final = "client-id"
IP: Final = "ip"

PRODUCER_BYTE_RATE: Final = "producer_byte_rate"
CONSUMER_BYTE_RATE: Final = "consumer_byte_rate"
REQUEST_PERCENTAGE: Final = "request_percentage"
CONTROLLER_MUTATION_RATE: Final = "controller_mutation_rate"
CONNECTION_CREATION_RATE: Final = "connection_creation_rate"

# (kind, name) pairs, ordered by kind.
QuotaEntity: TypeAlias = "tuple[tuple[str, str | None], ...]"
# Values by entity and quota key; no empty inner mappings.
ClientQuotas: TypeAlias = "Mapping[QuotaEntity, Mapping[str, float]]"


class AppliedQuota(NamedTuple):
    """The quota that applies to a client."""

    # Clients with the same values share the quota; "" matches any.
    user: str
    client_id: str
    limit: float


def entity_of(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity of kinds and names; the last of a kind counts."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


def applied_quota(
    quotas: ClientQuotas, key: str, *, user: str, client_id: str
) -> AppliedQuota | None:
    """Return the quota that applies to a client; None: no limit.

    `key` is a quota such as producer_byte_rate; `client_id` may be "".
    """
    for entity_user in (user, None):
        for entity_client in (client_id, None):
            entity_quotas = quotas.get(((CLIENT_ID, entity_client), (USER, entity_user)))
            if entity_quotas is not None and key in entity_quotas:
                return AppliedQuota(user, client_id, entity_quotas[key])
        entity_quotas = quotas.get(((USER, entity_user),))
        if entity_quotas is not None and key in entity_quotas:
            return AppliedQuota(user, "", entity_quotas[key])
    for entity_client in (client_id, None):
        entity_quotas = quotas.get(((CLIENT_ID, entity_client),))
        if entity_quotas is not None and key in entity_quotas:
            return AppliedQuota("", client_id, entity_quotas[key])
    return None


def connection_rates(quotas: ClientQuotas) -> dict[str | None, float]:
    """Return the connections per second by address, the default under None.

    An address with several spellings gets the lowest rate.
    """
    rates: dict[str | None, float] = {}
    for entity, values in quotas.items():
        if entity[0][0] != IP or CONNECTION_CREATION_RATE not in values:
            continue
        name = entity[0][1]
        address = None if name is None else normal_address(name)
        if name is None or address is not None:
            rate = values[CONNECTION_CREATION_RATE]
            rates[address] = min(rate, rates.get(address, rate))
    return rates
