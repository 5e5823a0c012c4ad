"""Quotas of users, client ids and addresses (KIP-546)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.errors import check
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.quotas.quota_entity import (
    CONNECTION_CREATION_RATE,
    CONSUMER_BYTE_RATE,
    CONTROLLER_MUTATION_RATE,
    PRODUCER_BYTE_RATE,
    REQUEST_PERCENTAGE,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.client.kafka_client import KafkaClient

# Keys by kind of entity. Source: Kafka's QuotaConfig.
CLIENT_QUOTAS: Final = (
    PRODUCER_BYTE_RATE,
    CONSUMER_BYTE_RATE,
    REQUEST_PERCENTAGE,
    CONTROLLER_MUTATION_RATE,
)
ADDRESS_QUOTAS: Final = (CONNECTION_CREATION_RATE,)

_EXACT: Final = 0
_DEFAULT: Final = 1
_ANY: Final = 2

# Name by kind (user, client-id, ip); None for the kind's default.
Entity = dict[str, str | None]


class EntityQuotas(NamedTuple):
    """The quotas of an entity, by key."""

    entity: Entity
    values: dict[str, float]


async def list_quotas(
    client: KafkaClient,
    entity_parts: Entity,
    *,
    any_of: Iterable[str] = (),
    is_strict: bool = False,
) -> list[EntityQuotas]:
    """Return the quotas of all entities that contain the wanted parts; without parts, of all.

    `any_of` are kinds that match any name and the default. `is_strict` excludes entities with
    further parts.
    """
    components = [
        {
            "entity_type": kind,
            "match_type": _DEFAULT if name is None else _EXACT,
            "match": name,
        }
        for kind, name in entity_parts.items()
    ]
    components += [{"entity_type": kind, "match_type": _ANY, "match": None} for kind in any_of]
    body = {"components": components, "strict": is_strict}
    answer = await client.request(ApiKey.DESCRIBE_CLIENT_QUOTAS, body)
    check(answer.error_code, "quotas cannot be listed", answer.error_message)
    entity_quotas = [
        EntityQuotas(
            {part.entity_type: part.entity_name for part in entry.entity},
            {quota.key: quota.value for quota in entry.values},
        )
        for entry in answer.entries or ()
    ]
    return sorted(entity_quotas, key=lambda quotas: entity_text(quotas.entity))


async def alter_quotas(
    client: KafkaClient,
    entity: Entity,
    changes: Mapping[str, float | None],
    *,
    validate_only: bool = False,
) -> None:
    """Set quotas of an entity, all or none; None removes one.

    `validate_only` only checks whether the cluster would do it.
    """
    parts = [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()]
    ops = [
        {"key": key, "value": value or 0.0, "remove": value is None}
        for key, value in changes.items()
    ]
    body = {"entries": [{"entity": parts, "ops": ops}], "validate_only": validate_only}
    answer = await client.request(ApiKey.ALTER_CLIENT_QUOTAS, body)
    for entry in answer.entries:
        failure = f"the quotas of {entity_text(entity)} cannot be changed"
        check(entry.error_code, failure, entry.error_message)


def entity_text(entity: Entity) -> str:
    """Return an entity's name for sentences."""
    return ", ".join(
        f"{kind} {'<default>' if name is None else name}" for kind, name in sorted(entity.items())
    )
