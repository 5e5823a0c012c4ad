"""Entities of `kafka-configs`: --entity-type and --entity-name, or a flag such as --topic."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.client.configs.configs import (
    BROKER,
    BROKER_LOGGER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    configured_client_metrics,
    configured_groups,
)
from wirebroker.client.groups.groups import list_groups, listed_groups

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.kafka_client import KafkaClient

# Name of the default of a type.
DEFAULT: Final = ""
BROKERS: Final = "brokers"
BROKER_LOGGERS: Final = "broker-loggers"
METRICS: Final = "client-metrics"
GROUPS: Final = "groups"


class NamedEntity(NamedTuple):
    """An entity; a name of None means all of its type."""

    kind: str
    name: str | None

    @property
    def is_default(self) -> bool:
        """Whether it is the default of brokers."""
        return self.kind == BROKERS and self.name == DEFAULT

    @property
    def resource_name(self) -> str:
        """Its name in requests."""
        return self.name or ""


class EntityKind(NamedTuple):
    """A type of entity; values of one have `source`, those of all `default_source`."""

    resource: int
    source: str
    default_source: str = ""


KINDS: Final = {
    "topics": EntityKind(TOPIC, "topic"),
    BROKERS: EntityKind(BROKER, "this broker", "all brokers"),
    BROKER_LOGGERS: EntityKind(BROKER_LOGGER, "logger"),
    GROUPS: EntityKind(GROUP, "group"),
    METRICS: EntityKind(CLIENT_METRICS, "client metrics"),
}


# By --entity-type: the names in the protocol and in the output.
CLIENT_KINDS: Final = {
    "users": ("user", "user-principal"),
    "clients": ("client-id", "client-id"),
    "ips": ("ip", "ip"),
}


def entities_of(
    kinds: Sequence[str],
    names: Sequence[str],
    *,
    named: Sequence[tuple[str, str | None]],
    is_changed: bool,
) -> list[NamedEntity]:
    """Return the named entities: one, or a user and a client.

    `names` has DEFAULT for each --entity-default, in order; `named` is from the types' own flags.
    With `is_changed`, names are required.

    Raises:
        click.UsageError: No entities, or an invalid combination.
    """
    entities = [NamedEntity(kind, name) for kind, name in named if name is not None]
    if entities and (kinds or names):
        raise click.UsageError("give --entity-type with --entity-name, or one of the other flags")
    for kind in kinds:
        if kind not in KINDS and kind not in CLIENT_KINDS:
            supported = ", ".join((*KINDS, *CLIENT_KINDS))
            raise click.UsageError(f"Invalid entity type {kind}: write one of {supported}")
    repeated = [kind for index, kind in enumerate(kinds) if kind in kinds[:index]]
    if repeated:
        raise click.UsageError(f"Duplicate entity type(s) specified: {','.join(repeated)}")
    if len(names) > len(kinds) and not entities:
        raise click.UsageError("there are more names of entities than types")
    entities += [
        NamedEntity(kind, name) for kind, name in zip_longest(kinds, names) if kind is not None
    ]
    if any(entity.kind in CLIENT_KINDS for entity in entities):
        _check_clients(entities, is_changed=is_changed)
    else:
        _check_resource(entities, is_changed=is_changed)
    return entities


def _check_clients(entities: Sequence[NamedEntity], *, is_changed: bool) -> None:
    kinds = [entity.kind for entity in entities]
    if len(kinds) > 1 and set(kinds) != {"users", "clients"}:
        raise click.UsageError("only users and clients can be named together")
    if is_changed and any(entity.name is None for entity in entities):
        raise click.UsageError("an entity name must be specified for every entity type")


def _check_resource(entities: Sequence[NamedEntity], *, is_changed: bool) -> None:
    if len(entities) != 1:
        raise click.UsageError("name one entity: by --entity-type, --topic, --broker, …")
    (entity,) = entities
    if entity.name == DEFAULT and entity.kind != BROKERS:
        raise click.UsageError(f"there are no defaults of {entity.kind}")
    if entity.kind == BROKER_LOGGERS and entity.name is None:
        raise click.UsageError(f"name the broker of the {BROKER_LOGGERS}: --entity-name")
    if entity.kind in {BROKERS, BROKER_LOGGERS} and entity.name and not entity.name.isdecimal():
        raise click.UsageError(f"{entity.name} is no broker's id")
    if is_changed and entity.name is None:
        raise click.UsageError(f"say which of the {entity.kind}")


async def described_entities(
    client: KafkaClient, entities: Sequence[NamedEntity]
) -> list[NamedEntity]:
    """Return the entities to describe: one, or all of a type."""
    (entity,) = entities
    if entity.name is not None:
        return [entity]
    if entity.kind == BROKERS:
        names = [*map(str, await client.broker_ids()), DEFAULT]
    elif entity.kind == "topics":
        names = sorted(topic.name for topic in (await client.metadata()).topics)
    elif entity.kind == GROUPS:
        present = [group.name for group in await listed_groups(client)]
        configured = await configured_groups(client) or ()
        names = in_map_order(list(dict.fromkeys([*present, *configured])), str)
    else:
        names = await configured_client_metrics(client)
    return [NamedEntity(entity.kind, name) for name in names]


async def is_unset(client: KafkaClient, entity: NamedEntity) -> bool:
    """Return whether an entity that brokers describe in any case is missing.

    A group then neither exists nor has configs, client metrics have no configs.
    """
    if entity.kind == METRICS:
        return entity.name not in await configured_client_metrics(client)
    if entity.kind != GROUPS:
        return False
    configured = await configured_groups(client)
    if configured is None or entity.name in configured:
        return False
    return all(group.name != entity.name for group in await list_groups(client))
