"""Whom a quota is about, and which of several is the one that counts.

An entity is what it names, by kind: a user, a client id, both, or an address; None is the default
of its kind, for whoever has none of their own. Of all that fit a client the most exact one counts:

    user + client id, user + default client, user,
    default user + client id, default user + default client, default user,
    client id, default client

Those to whom the same quota counts share it: under a quota of a user all clients of the user do,
under one of user and client id the connections of that client.

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

# Kinds with their names, ordered by kind, each once.
QuotaEntity: TypeAlias = "tuple[tuple[str, str | None], ...]"
# By entity, then by the quota's key; no empty inner mappings.
ClientQuotas: TypeAlias = "Mapping[QuotaEntity, Mapping[str, float]]"


class AppliedQuota(NamedTuple):
    """The quota that counts for a client."""

    # Whose it is: who has the same here shares it. "" is anybody's.
    user: str
    client_id: str
    limit: float


def entity_of(parts: Iterable[tuple[str, str | None]]) -> QuotaEntity:
    """Return the entity of kinds and names, of which the last of a kind counts."""
    return tuple(sorted(dict(parts).items(), key=lambda part: part[0]))


def applied_quota(
    quotas: ClientQuotas, key: str, *, user: str, client_id: str
) -> AppliedQuota | None:
    """Return the quota that counts for a client; None: it may do what it wants.

    Args:
        quotas: All that there are.
        key: Of users and clients, as producer_byte_rate.
        user: The principal's name.
        client_id: As it calls itself, maybe "".
    """
    for asked_user in (user, None):
        for asked_client in (client_id, None):
            found = quotas.get(((CLIENT_ID, asked_client), (USER, asked_user)))
            if found is not None and key in found:
                return AppliedQuota(user, client_id, found[key])
        found = quotas.get(((USER, asked_user),))
        if found is not None and key in found:
            return AppliedQuota(user, "", found[key])
    for asked_client in (client_id, None):
        found = quotas.get(((CLIENT_ID, asked_client),))
        if found is not None and key in found:
            return AppliedQuota("", client_id, found[key])
    return None


def connection_rates(quotas: ClientQuotas) -> dict[str | None, float]:
    """Return by address how many connections a second it may open, by None what others may.

    An address that has quotas under several spellings has the lowest of them.
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
