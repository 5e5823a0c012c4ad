"""A topic config as a field of TopicSettings with its default and row.

    retention_bytes: int = long(-1, "Size of a partition above which …", "log.retention.bytes")

`givers` are the broker configs that give topics their default, highest precedence first.

Source: Kafka's LogConfig and ServerTopicConfigSynonyms.
"""

from __future__ import annotations

from dataclasses import field, fields, replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Unpack

from wirebroker.config.rows.row import ConfigRow, ConfigType, ConfigValue, Mutability
from wirebroker.config.rows.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.config.rows.forms import Options

LONG_MAX: Final = (1 << 63) - 1
MINUTE_MS: Final = 60_000
HOUR_MS: Final = 3_600_000
DAY_MS: Final = 24 * HOUR_MS


class TopicDefault(NamedTuple):
    """A broker config for a topic config's default that differs from the topic's row.

    Attributes:
        default: Of several givers only the last has one.
        mutability: Only the giver in the topic's unit can be changed.
        factor: From its unit to the topic's.
    """

    name: str
    type: ConfigType = ConfigType.LONG
    default: str | None = None
    at_least: float | None = None
    mutability: Mutability = Mutability.CLUSTER_WIDE
    factor: int = 1


def hours(name: str, default: int, at_least: int | None = None) -> TopicDefault:
    """Return a broker config in hours."""
    return TopicDefault(name, ConfigType.INT, str(default), at_least, Mutability.READ_ONLY, HOUR_MS)


def minutes(name: str) -> TopicDefault:
    """Return a broker config in minutes, unset by default."""
    return TopicDefault(name, ConfigType.INT, None, None, Mutability.READ_ONLY, MINUTE_MS)


def _maker(type: ConfigType) -> Callable[..., Any]:  # noqa: A002

    def make(
        default: ConfigValue,
        doc: str,
        *givers: str | TopicDefault,
        at_least: float | None = None,
        **options: Unpack[Options],
    ) -> Any:
        row = ConfigRow(
            name="",
            type=type,
            default=text_of(default),
            doc=doc,
            at_least=at_least,
            synonyms=tuple(giver if isinstance(giver, str) else giver.name for giver in givers),
            **options,
        )
        return field(default=default, metadata={"row": row, "givers": givers})

    return make


boolean = _maker(ConfigType.BOOLEAN)
integer = _maker(ConfigType.INT)
long = _maker(ConfigType.LONG)
double = _maker(ConfigType.DOUBLE)
text = _maker(ConfigType.STRING)
items = _maker(ConfigType.LIST)


def topic_rows(settings: type) -> dict[str, ConfigRow]:
    """Return the topic configs' rows by name."""
    return {
        name: replace(setting.metadata["row"], name=name)
        for setting in fields(settings)
        for name in (setting.name.replace("_", "."),)
    }


def unit_factors(settings: type) -> dict[str, int]:
    """Return the factors of broker configs in another unit than their topic config."""
    return {
        giver.name: giver.factor
        for giver in _converted_defaults(settings).values()
        if giver.factor != 1
    }


def broker_default_rows(settings: type) -> list[ConfigRow]:
    """Return the rows of topics' defaults."""
    converted_givers = _converted_defaults(settings)
    rows: list[ConfigRow] = []
    for topic_row in topic_rows(settings).values():
        names = topic_row.synonyms
        for name in names:
            row = replace(
                topic_row,
                name=name,
                doc=f"Default of the topic config {topic_row.name}. {topic_row.doc}",
                topic_name=topic_row.name,
                synonyms=names if len(names) > 1 else (),
                mutability=Mutability.CLUSTER_WIDE,
            )
            if name in converted_givers:
                _, type_, default, at_least, mutability, _ = converted_givers[name]
                row = replace(
                    row, type=type_, default=default, at_least=at_least, mutability=mutability
                )
            rows.append(row)
    return rows


def _converted_defaults(settings: type) -> dict[str, TopicDefault]:
    givers = [giver for setting in fields(settings) for giver in setting.metadata["givers"]]
    return {giver.name: giver for giver in givers if isinstance(giver, TopicDefault)}
