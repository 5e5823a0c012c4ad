"""`kafka-configs` for users, clients and ips: quotas, and logins by SCRAM.

    --user alice --add-config SCRAM-SHA-512=[iterations=8192,password=…]
    --entity-type users --entity-name alice --entity-type clients --entity-default …

Both have their own requests (KIP-546, KIP-554).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NamedTuple

import click

from wirebroker.cli.kafka.config_entities import CLIENT_KINDS, DEFAULT
from wirebroker.client.configs.quotas import (
    ADDRESS_QUOTAS,
    CLIENT_QUOTAS,
    alter_quotas,
    list_quotas,
)
from wirebroker.client.errors import ClientError
from wirebroker.client.security.users import NewPassword, alter_user, list_users
from wirebroker.codecs.scram import LEAST_ITERATIONS, MOST_ITERATIONS, SCRAM_NUMBERS

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.cli.kafka.config_entities import NamedEntity
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.configs.quotas import Entity
    from wirebroker.client.kafka_client import KafkaClient

_PASSWORD: Final = re.compile(r"(?:iterations=(-?[0-9]+)?,)?password=(.*)", re.DOTALL)


class ClientChanges(NamedTuple):
    """Changed quotas and logins; None removes one."""

    quotas: dict[str, float | None]
    logins: dict[int, NewPassword | None]  # by the mechanism's number


def check_changes(
    entities: Sequence[NamedEntity], changes: Mapping[str, str | None]
) -> ClientChanges:
    """Parse changes; a value of None removes.

    Raises:
        click.UsageError: The changes are invalid for these entities, or contradict each other.
    """
    kinds = [entity.kind for entity in entities]
    logins = {name: text for name, text in changes.items() if name in SCRAM_NUMBERS}
    supported = set(ADDRESS_QUOTAS if kinds == ["ips"] else CLIENT_QUOTAS)
    if kinds == ["users"]:
        supported |= SCRAM_NUMBERS.keys()
    unknown = sorted(changes.keys() - supported)
    if unknown:
        raise click.UsageError(f"{', '.join(unknown)} cannot be set of {' and '.join(kinds)}")
    if not logins:
        return ClientChanges({name: _number(name, text) for name, text in changes.items()}, {})
    if len(logins) < len(changes):
        raise click.UsageError("quotas and logins cannot be changed in one go")
    if entities[0].name == DEFAULT:
        raise click.UsageError("there are no logins of --user-defaults")
    passwords = {SCRAM_NUMBERS[name]: _password(name, text) for name, text in logins.items()}
    return ClientChanges({}, passwords)


def _number(name: str, text: str | None) -> float | None:
    if text is None:
        return None
    try:
        # Python also accepts 1_000.
        return float(text.replace("_", "?"))
    except ValueError:
        raise click.UsageError(f"{name}={text} cannot be used: it must be a number") from None


def _password(mechanism: str, text: str | None) -> NewPassword | None:
    if text is None:
        return None
    match = _PASSWORD.fullmatch(text)
    if match is None:
        raise click.UsageError(f"write {mechanism}=[iterations=N,password=PASSWORD]")
    if not match[2]:
        raise click.UsageError(f"the password of {mechanism} is empty")
    iterations_text = match[1] or "-1"
    # Limited because this process computes that many hashes.
    iterations = int(iterations_text) if len(iterations_text) < 9 else MOST_ITERATIONS + 1
    if iterations == -1:
        iterations = LEAST_ITERATIONS
    if iterations > MOST_ITERATIONS:
        raise click.UsageError(f"{mechanism} takes {MOST_ITERATIONS} iterations, at most")
    if iterations < LEAST_ITERATIONS:
        raise click.UsageError(f"{mechanism} needs {LEAST_ITERATIONS} iterations, at least")
    return NewPassword(match[2], iterations)


async def alter_client_configs(
    client: KafkaClient,
    out: Output,
    entities: Sequence[NamedEntity],
    changes: ClientChanges,
) -> None:
    """Make all changes or none.

    Raises:
        ClientError: They are refused, or a value to remove does not exist.
    """
    entity_name = entities[0].name or DEFAULT
    if changes.quotas:
        entity = _entity(entities)
        existing = {
            key
            for entity_quotas in await list_quotas(client, entity, is_strict=True)
            for key in entity_quotas.values
        }
        removed = {name for name, value in changes.quotas.items() if value is None}
        if removed - existing:
            raise ClientError(f"Invalid config(s): {','.join(sorted(removed - existing))}")
        await alter_quotas(client, entity, changes.quotas)
    else:
        await alter_user(client, entity_name, changes.logins)
    kind = entities[0].kind
    if entity_name == DEFAULT:
        out.line(f"Completed updating default config for {kind} in the cluster.")
    else:
        out.line(f"Completed updating config for {kind[:-1]} {entity_name}.")


async def describe_client_configs(
    client: KafkaClient, out: Output, entities: Sequence[NamedEntity]
) -> None:
    """Print quotas, and logins of users without clients."""
    from wirebroker.config.rows.texts import text_of  # noqa: PLC0415 - numbers as Java writes them

    any_of = [
        CLIENT_KINDS[named_entity.kind][0] for named_entity in entities if named_entity.name is None
    ]
    for entity, values in await list_quotas(
        client, _entity(entities), any_of=any_of, is_strict=True
    ):
        subject = ", ".join(
            f"{noun} '{entity[kind]}'" if entity[kind] else f"the default {noun}"
            for kind, noun in CLIENT_KINDS.values()
            if kind in entity
        )
        quotas = ", ".join(f"{key}={text_of(value)}" for key, value in values.items())
        out.line(f"Quota configs for {subject} are {quotas}")
    kinds = [named_entity.kind for named_entity in entities]
    if kinds == ["users"] and entities[0].name != DEFAULT:
        await _describe_logins(client, out, entities[0].name)


async def _describe_logins(client: KafkaClient, out: Output, name: str | None) -> None:
    logins: dict[str, list[str]] = {}
    for login in await list_users(client, [] if name is None else [name]):
        logins.setdefault(login.name, []).append(f"{login.mechanism}=iterations={login.iterations}")
    for user, texts in logins.items():
        out.line(f"SCRAM credential configs for user-principal '{user}' are {', '.join(texts)}")


def _entity(entities: Sequence[NamedEntity]) -> Entity:
    return {
        CLIENT_KINDS[entity.kind][0]: entity.name or None
        for entity in entities
        if entity.name is not None
    }
