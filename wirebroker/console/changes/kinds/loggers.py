"""Changes of the log levels of a broker (KIP-412)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted
from wirebroker.client.configs.configs import BROKER_LOGGER, alter_configs, configs_of
from wirebroker.client.errors import did_you_mean
from wirebroker.console.changes.change import (
    ChangeError,
    ChangeKind,
    ConsoleRole,
    Field,
    FieldKind,
    PreparedChange,
)
from wirebroker.console.changes.command_line import kafka_line
from wirebroker.console.changes.field_values import lines_of, settings_of
from wirebroker.console.changes.numbers import required_number

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.collector import Collector

ROOT_LOGGER: Final = "root"
_LEVELS: Final = ("TRACE", "DEBUG", "INFO", "WARN", "ERROR", "FATAL")
_MOST_BROKER: Final = (1 << 31) - 1
_UNTIL_RESTART: Final = "The levels last until the broker restarts."


async def _alter(collector: Collector, values: Mapping[str, str]) -> PreparedChange:
    broker = str(required_number(values, "broker", 0, _MOST_BROKER))
    client = collector.client
    changes = _changes_of(values)
    rows = await configs_of(client, BROKER_LOGGER, broker)
    levels = {row.name: row.value or "unknown" for row in rows}
    for name in changes:
        if name not in levels:
            hint = did_you_mean(name, levels)
            raise ChangeError(
                f"broker {broker} has no logger {name[:200]}{hint}", _field_of(values)
            )
    await alter_configs(client, BROKER_LOGGER, broker, changes, validate_only=True)

    async def apply() -> str:
        await alter_configs(client, BROKER_LOGGER, broker, changes)
        return f"{counted(len(changes), 'logger')} of broker {broker} changed"

    return PreparedChange(
        f"Change {counted(len(changes), 'logger')} of broker {broker}",
        tuple(
            f"{name}: {levels[name]} → {level or 'the level of its parent logger'}"
            for name, level in changes.items()
        ),
        kafka_line(collector.settings, "kafka-configs", _flags(broker, changes)),
        apply,
        warnings=(_UNTIL_RESTART,),
    )


def _changes_of(values: Mapping[str, str]) -> dict[str, str | None]:
    """Return the new level of each logger, None to inherit it."""
    changes: dict[str, str | None] = {}
    for name, text in settings_of(values, "set").items():
        level = text.upper()
        if level not in _LEVELS:
            raise ChangeError(f"{text[:40]!r} is not a level: write {', '.join(_LEVELS)}", "set")
        changes[name] = level
    for name in lines_of(values, "unset"):
        if name in changes:
            raise ChangeError(f"{name[:200]} is named twice", "unset")
        if name == ROOT_LOGGER:
            raise ChangeError(f"{name} has no parent logger: set its level", "unset")
        changes[name] = None
    if not changes:
        raise ChangeError("write at least one logger to set or to reset", "set")
    return changes


def _field_of(values: Mapping[str, str]) -> str:
    return "set" if values["set"].strip() else "unset"


def _flags(broker: str, changes: Mapping[str, str | None]) -> list[str]:
    flags = ["--alter", "--entity-type", "broker-loggers", "--entity-name", broker]
    added = [f"{name}={level}" for name, level in changes.items() if level is not None]
    removed = [name for name, level in changes.items() if level is None]
    flags += ["--add-config", ",".join(added)] if added else []
    flags += ["--delete-config", ",".join(removed)] if removed else []
    return flags


KINDS: Final[tuple[ChangeKind, ...]] = (
    ChangeKind(
        "alter-broker-loggers",
        "Change log levels of a broker",
        ConsoleRole.ADMIN,
        (
            Field("broker", "Broker", FieldKind.NUMBER, "Its id."),
            Field(
                "set",
                "Set",
                FieldKind.LONG_TEXT,
                f"A line for each logger, such as kafka.log=DEBUG. Levels: {', '.join(_LEVELS)}.",
                is_required=False,
            ),
            Field(
                "unset",
                "Reset to the level of the parent logger",
                FieldKind.LONG_TEXT,
                "A line with the name of each logger.",
                is_required=False,
            ),
        ),
        "broker",
        _alter,
        "brokers",
        "broker/loggers",
    ),
)
