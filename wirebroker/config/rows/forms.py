"""Short constructors for the rows of the config table.

    integer("num.partitions", 1, "Partitions of a topic that is created without their number.", 1)

Kafka's configs without effect are listed in blocks with the reason.

    kept("the event loop does this work.", '''
        num.io.threads int 8 1.. cluster-wide doubles
        queued.max.requests int 500 - read-only
    ''')
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from wirebroker.config.rows.row import (
    ConfigRow,
    ConfigType,
    ConfigValue,
    Effect,
    Mutability,
    OfListener,
)
from wirebroker.config.rows.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

READ_ONLY: Final = Mutability.READ_ONLY
PER_BROKER: Final = Mutability.PER_BROKER
CLUSTER_WIDE: Final = Mutability.CLUSTER_WIDE
INT_MAX: Final = (1 << 31) - 1


class Options(TypedDict, total=False):
    """Rarely used fields of ConfigRow."""

    at_most: float
    also: int
    choices: tuple[str, ...]
    check: Callable[[ConfigValue], str | None]
    mutability: Mutability
    effect: Effect
    of_listener: OfListener
    at_most_doubles: bool
    profile: str
    internal: bool


def integer(
    name: str,
    default: int | None,
    doc: str,
    at_least: int | None = None,
    **options: Unpack[Options],
) -> ConfigRow:
    """Return a row of a 32-bit integer."""
    return _row(ConfigType.INT, name, default, doc, at_least, **options)


def long(
    name: str,
    default: int | None,
    doc: str,
    at_least: int | None = None,
    **options: Unpack[Options],
) -> ConfigRow:
    """Return a row of a 64-bit integer."""
    return _row(ConfigType.LONG, name, default, doc, at_least, **options)


def short(
    name: str, default: int, doc: str, at_least: int | None = None, **options: Unpack[Options]
) -> ConfigRow:
    """Return a row of a 16-bit integer."""
    return _row(ConfigType.SHORT, name, default, doc, at_least, **options)


def double(
    name: str, default: float, doc: str, at_least: float | None = None, **options: Unpack[Options]
) -> ConfigRow:
    """Return a decimal row."""
    return _row(ConfigType.DOUBLE, name, default, doc, at_least, **options)


def boolean(name: str, default: bool, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return a boolean row."""
    return _row(ConfigType.BOOLEAN, name, default, doc, **options)


def text(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return a text row."""
    return _row(ConfigType.STRING, name, default, doc, **options)


def class_name(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return a row of a class name."""
    return _row(ConfigType.CLASS, name, default, doc, **options)


def password(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return a row of a hidden text."""
    return _row(ConfigType.PASSWORD, name, default, doc, **options)


def items(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return a list row; its default is comma-separated."""
    return _row(ConfigType.LIST, name, default, doc, **options)


def kept(why: str, lines: str) -> tuple[ConfigRow, ...]:
    """Return rows without effect: they are described, and can be changed as in Kafka.

    `why` is the end of a sentence. Each line is a row: name, type, default (`-` unset, `""` empty),
    range or choices (`-` none), level, and marks:

        doubles     a change may at most double or halve the value
        each        a listener's own value may be set for all brokers
        only-each   only listeners' own values exist
        class       AlterConfigs accepts only the default class
        asks        a value other than the default requires protection
        internal    DescribeConfigs shows it only if it is set
    """
    doc = f"Has no effect in wirebroker: {why}"
    return tuple(_row_without_effect(line, doc) for line in lines.splitlines() if line.strip())


def _row(
    type: ConfigType,  # noqa: A002
    name: str,
    default: ConfigValue,
    doc: str,
    at_least: float | None = None,
    **options: Unpack[Options],
) -> ConfigRow:
    return ConfigRow(
        name=name, type=type, default=text_of(default), doc=doc, at_least=at_least, **options
    )


def _row_without_effect(line: str, doc: str) -> ConfigRow:
    name, kind, default, allowed, level, *marks = line.split()
    assert {*marks} <= {"doubles", "each", "only-each", "class", "asks", "internal"}, line
    minimum, dots, maximum = allowed.partition("..")
    type_ = ConfigType[kind.upper()]
    own = OfListener.CLUSTER_WIDE if "each" in marks else OfListener.PER_BROKER
    defaults = () if default == "-" else (default,)
    return ConfigRow(
        name=name,
        type=type_,
        default=None if default == "-" else default.strip('"'),
        doc=doc,
        at_least=int(minimum) if dots else None,
        at_most=int(maximum) if maximum else None,
        choices=() if dots or allowed == "-" else tuple(allowed.split(",")),
        mutability=Mutability(level),
        effect=Effect.KEPT,
        of_listener=OfListener.ONLY if "only-each" in marks else own,
        at_most_doubles="doubles" in marks,
        classes=(*defaults, *([""] if type_ is ConfigType.LIST else []))
        if "class" in marks
        else None,
        asks="asks" in marks,
        internal="internal" in marks,
    )
