"""Changes of quotas of users, client ids and addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.client.configs.quotas import (
    ADDRESS_QUOTAS,
    CLIENT_QUOTAS,
    Entity,
    alter_quotas,
    entity_text,
    list_quotas,
)
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import verb_line

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.collector import Collector

_DEFAULT: Final = "<default>"
_ENTITY_FIELDS: Final = tuple(
    Field(kind, title, help=f"A name, or {_DEFAULT} for {all_others}.", is_required=False)
    for kind, title, all_others in (
        ("user", "User", "users without their own quota"),
        ("client-id", "Client id", "client ids without their own quota"),
        ("ip", "Address", "addresses without their own quota"),
    )
)
_HELP: Final = {
    "producer_byte_rate": "Bytes per second that producers write.",
    "consumer_byte_rate": "Bytes per second that consumers read.",
    "request_percentage": "Percent of a broker's request time.",
    "controller_mutation_rate": "Partitions created and deleted per second.",
    "connection_creation_rate": "Connections per second; only for addresses.",
}
_QUOTAS: Final = (*CLIENT_QUOTAS, *ADDRESS_QUOTAS)
_ALL: Final = "all"


def _entity(values: Mapping[str, str]) -> Entity:
    entity: Entity = {
        field.name: None if values[field.name] == _DEFAULT else values[field.name]
        for field in _ENTITY_FIELDS
        if values[field.name]
    }
    if not entity:
        raise ChangeError(
            "name whose quota it is: a user, a client id, both, or an address", "user"
        )
    if "ip" in entity and len(entity) > 1:
        raise ChangeError("an address has its own quotas, not those of a user or client id", "ip")
    return entity


def entity_fields(entity: Entity) -> dict[str, str]:
    """Return an entity as values of the fields."""
    return {kind: _DEFAULT if name is None else name for kind, name in entity.items()}


def _flags(entity: Entity) -> tuple[str, ...]:
    return tuple(
        flag
        for kind, name in entity.items()
        for flag in ((f"--default-{kind}",) if name is None else (f"--{kind}", name))
    )


def _number(values: Mapping[str, str], key: str) -> float:
    text = values[key]
    try:
        number = float(text.replace("_", "?"))  # Python also accepts 1_000
    except ValueError:
        number = 0.0
    if not 0 < number < float("inf"):
        raise ChangeError(f"{text[:40]!r} is not a number above 0", key)
    return number


def _text(number: float) -> str:
    return f"{number:.15g}"


async def _current(collector: Collector, entity: Entity) -> dict[str, float]:
    found = await list_quotas(collector.client, entity, is_strict=True)
    nothing: dict[str, float] = {}
    return next((quotas.values for quotas in found if quotas.entity == entity), nothing)


def _scope(entity: Entity) -> tuple[str, ...]:
    is_default = None in entity.values()
    return ("each of them has the quota separately",) if is_default else ()


async def _set(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    entity = _entity(values)
    changes = {key: _number(values, key) for key in _QUOTAS if values[key]}
    if not changes:
        raise ChangeError("enter a value for at least one quota", _QUOTAS[0])
    supported = ADDRESS_QUOTAS if "ip" in entity else CLIENT_QUOTAS
    for key in changes:
        if key not in supported:
            raise ChangeError(f"{entity_text(entity)} cannot have the quota {key}", key)
    current = await _current(collector, entity)
    await alter_quotas(collector.client, entity, changes, validate_only=True)

    async def apply() -> str:
        await alter_quotas(collector.client, entity, changes)
        return f"{counted(len(changes), 'quota')} of {entity_text(entity)} set"

    lines = [
        f"{key}: {_text(current[key]) if key in current else 'not set'} → {_text(number)}"
        for key, number in changes.items()
    ]
    settings = [f"{key}={_text(number)}" for key, number in changes.items()]
    return PreparedChange(
        f"Set {counted(len(changes), 'quota')} of {entity_text(entity)}",
        (*lines, *_scope(entity)),
        verb_line(collector.settings, "quota set", _flags(entity), settings),
        apply,
    )


async def _remove(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    entity, key = _entity(values), values["quota"]
    current = await _current(collector, entity)
    removed = [name for name in sorted(current) if key in {_ALL, name}]
    if not removed:
        what = "quota" if key == _ALL else f"quota {key}"
        raise ChangeError(f"{entity_text(entity)} has no {what}", "quota")

    async def apply() -> str:
        await alter_quotas(collector.client, entity, dict.fromkeys(removed))
        return f"{counted(len(removed), 'quota')} of {entity_text(entity)} removed"

    return PreparedChange(
        f"Remove {counted(len(removed), 'quota')} of {entity_text(entity)}",
        (
            *(f"{name}: {_text(current[name])} → not set" for name in removed),
            "a more general quota then applies, if there is one",
        ),
        verb_line(collector.settings, "quota unset", _flags(entity), removed),
        apply,
    )


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "set-quotas",
        "Set quotas",
        ConsoleRole.ADMIN,
        (
            *_ENTITY_FIELDS,
            *(
                Field(key, key, help=f"{_HELP[key]} Empty: not changed.", is_required=False)
                for key in _QUOTAS
            ),
        ),
        "user",
        _set,
        "quotas",
    ),
    ChangeKind(
        "remove-quotas",
        "Remove quotas",
        ConsoleRole.ADMIN,
        (
            *_ENTITY_FIELDS,
            Field(
                "quota",
                "Quota",
                FieldKind.CHOICE,
                default=_ALL,
                choices=((_ALL, "all of them"), *((key, key) for key in _QUOTAS)),
            ),
        ),
        "user",
        _remove,
        "quotas",
    ),
)
