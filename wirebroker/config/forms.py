'''Short forms in which the table's rows are written.

    integer("num.partitions", 1, "Partitions of a topic whose creator doesn't say.", 1)

Kafka's configs that nothing here reads stand in blocks, a line each; a feature that comes to read
one writes it out.

    kept("Why nothing reads them.", """
        num.io.threads int 8 1.. cluster-wide doubles
        sasl.kerberos.service.name string - - per-broker
    """)
    named("""
        authorizer.class.name asks
        sasl.login.retry.backoff.ms =100
    """)

A leaf.
'''

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypedDict, Unpack

from wirebroker.config.row import ConfigRow, ConfigType, ConfigValue, Effect, Mutability, OfListener
from wirebroker.config.texts import text_of

if TYPE_CHECKING:
    from collections.abc import Callable

READ_ONLY: Final = Mutability.READ_ONLY
PER_BROKER: Final = Mutability.PER_BROKER
CLUSTER_WIDE: Final = Mutability.CLUSTER_WIDE
INT_MAX: Final = (1 << 31) - 1


class Options(TypedDict, total=False):
    """What few rows say; ConfigRow tells of each."""

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
    """Return the row of a whole number of 32 bits."""
    return _row(ConfigType.INT, name, default, doc, at_least, **options)


def long(
    name: str,
    default: int | None,
    doc: str,
    at_least: int | None = None,
    **options: Unpack[Options],
) -> ConfigRow:
    """Return the row of a whole number of 64 bits."""
    return _row(ConfigType.LONG, name, default, doc, at_least, **options)


def short(
    name: str, default: int, doc: str, at_least: int | None = None, **options: Unpack[Options]
) -> ConfigRow:
    """Return the row of a whole number of 16 bits."""
    return _row(ConfigType.SHORT, name, default, doc, at_least, **options)


def double(
    name: str, default: float, doc: str, at_least: float | None = None, **options: Unpack[Options]
) -> ConfigRow:
    """Return the row of a decimal number."""
    return _row(ConfigType.DOUBLE, name, default, doc, at_least, **options)


def boolean(name: str, default: bool, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return the row of what is true or false."""
    return _row(ConfigType.BOOLEAN, name, default, doc, **options)


def text(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return the row of a text."""
    return _row(ConfigType.STRING, name, default, doc, **options)


def class_name(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return the row of the name of a class."""
    return _row(ConfigType.CLASS, name, default, doc, **options)


def password(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return the row of a text that is never shown."""
    return _row(ConfigType.PASSWORD, name, default, doc, **options)


def items(name: str, default: str | None, doc: str, **options: Unpack[Options]) -> ConfigRow:
    """Return the row of a list; its default is items with commas."""
    return _row(ConfigType.LIST, name, default, doc, **options)


def kept(why: str, lines: str) -> tuple[ConfigRow, ...]:
    """Return rows that AlterConfigs may change and that nothing here reads.

    Args:
        why: Why nothing does, in place of what they do.
        lines: Of each its name, type, default (`-` for unset, `""` for empty), range or choices
            (`-` for none), level, and marks:
            doubles: a change at most doubles or halves it;
            each: a listener's own may be set for all brokers;
            only-each: there is none but the listeners' own;
            class: AlterConfigs takes no other class than the default;
            asks: another value than the default asks for protection.
    """
    return tuple(_kept_row(line, why) for line in _lines_of(lines))


def named(lines: str) -> tuple[ConfigRow, ...]:
    """Return the rows of configs that are known by their names alone.

    Args:
        lines: Of each its name, and marks:
            list: it is one, which AlterConfigs asks before it says no;
            =value: Kafka's default, which asks for no protection;
            asks: any other value does. Those in ssl. and sasl. do without the mark.
    """
    return tuple(_named_row(line) for line in _lines_of(lines))


def _row(
    type: ConfigType,  # noqa: A002 - the row's own word
    name: str,
    default: ConfigValue,
    doc: str,
    at_least: float | None = None,
    **options: Unpack[Options],
) -> ConfigRow:
    return ConfigRow(
        name=name, type=type, default=text_of(default), doc=doc, at_least=at_least, **options
    )


def _kept_row(line: str, why: str) -> ConfigRow:
    name, kind, default, allowed, level, *marks = line.split()
    assert {*marks} <= {"doubles", "each", "only-each", "class", "asks"}, line
    least, dots, most = allowed.partition("..")
    type_ = ConfigType[kind.upper()]
    own = OfListener.CLUSTER_WIDE if "each" in marks else OfListener.PER_BROKER
    there = () if default == "-" else (default,)
    return ConfigRow(
        name=name,
        type=type_,
        default=None if default == "-" else default.strip('"'),
        doc=why,
        at_least=int(least) if dots else None,
        at_most=int(most) if most else None,
        choices=() if dots or allowed == "-" else tuple(allowed.split(",")),
        mutability=Mutability(level),
        effect=Effect.KEPT,
        of_listener=OfListener.ONLY if "only-each" in marks else own,
        at_most_doubles="doubles" in marks,
        # An empty list of classes needs none of them.
        classes=(*there, *([""] if type_ is ConfigType.LIST else [])) if "class" in marks else None,
        asks="asks" in marks,
    )


def _named_row(line: str) -> ConfigRow:
    name, *marks = line.split()
    defaults = [mark[1:] for mark in marks if mark.startswith("=")]
    assert {*marks} <= {"list", "asks", *(f"={value}" for value in defaults)}, line
    return ConfigRow(
        name=name,
        type=ConfigType.LIST if "list" in marks else ConfigType.STRING,
        default=defaults[0] if defaults else None,
        doc="",
        effect=Effect.NAMED,
        asks="asks" in marks,
    )


def _lines_of(block: str) -> list[str]:
    return [line for line in block.splitlines() if line.strip()]
