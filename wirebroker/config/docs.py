"""Generator of docs/configs.md: `wirebroker configs --markdown > docs/configs.md`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.groups import GROUP_ROWS
from wirebroker.config.lookup import READ_PER_LISTENER
from wirebroker.config.rows.row import Effect
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import BROKER_ROWS, ONE_NODE_PROFILE, ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.config.rows.row import ConfigRow

_INTRODUCTION: Final = """\
# Configs

Names, types, ranges and defaults are those of Apache Kafka 4.4; names that begin with `wirebroker.`
exist only in wirebroker.

The column *changed* shows whether AlterConfigs may change the config while the broker runs:
*cluster-wide* for all brokers or for one, *per-broker* for one only, *read-only* not at all. A
change takes effect immediately; other changes are refused, as in Kafka. The column *read* shows
whether wirebroker reads the config; a config that it does not read is stored and shown, and has no
effect.

The sources of settings, highest precedence first: flags (`--set key=value`), `KAFKA_` environment
variables, the file given by `--config`, the default.
"""

_PROFILE: Final = """
## Without a configuration file

`wirebroker serve` without `--config` uses these settings instead of Kafka's defaults:

| config | value |
| --- | --- |
"""

_BROKER: Final = """
## Broker configs

A listener can have its own value of {of_listeners}, in a
file or by AlterConfigs: `listener.name.<listener>.max.connections`, with the name in lower case.

| config | type | default | allowed | what it does | changed | read |
| --- | --- | --- | --- | --- | --- | --- |
"""

_WITHOUT_EFFECT: Final = """
## Without effect

These Kafka configs have no effect. A file may contain them; one warning lists them. Those that
require protection prevent the start of the broker
([guide](guide.md#protection-that-is-not-available)). DescribeConfigs shows their values, by default
Kafka's. AlterConfigs changes those that Kafka can change at run time, within Kafka's limits (thread
counts at most double or halve; classes must be Kafka's own).

| config | type | default | allowed | why | changed |
| --- | --- | --- | --- | --- | --- |
"""

_TOPIC: Final = """
## Topic configs

Set per topic when it is created or later. The default is the value of the broker config in the
table; of several, the first that is set.

| config | type | default | allowed | what it does | broker config | read |
| --- | --- | --- | --- | --- | --- | --- |
"""

_GROUP: Final = """
## Group configs

Set per group, before or after it is created: `kafka-configs --alter --group NAME --add-config …`.
The default is the value of the broker config in the table. Where the broker has a minimum or a
maximum (such as `group.consumer.min.…` and `group.consumer.max.…`), it limits the value.

| config | type | default | allowed | what it does | broker config |
| --- | --- | --- | --- | --- | --- |
"""

_END: Final = """
This page is generated from the table in the source by `wirebroker configs --markdown`; do not edit
it.
"""


def as_markdown() -> str:
    """Return the contents of docs/configs.md."""
    parts = [_INTRODUCTION, _PROFILE]
    parts += [f"| `{name}` | `{value}` |\n" for name, value in ONE_NODE_PROFILE.items()]
    of_listeners = " and ".join(f"`{name}`" for name in READ_PER_LISTENER)
    parts.append(_BROKER.format(of_listeners=of_listeners))
    for row in _shown(BROKER_ROWS.values()):
        parts.append(_line(row, f"{row.mutability.value} | {row.effect.value}"))
    parts.append(_TOPIC)
    for row in _shown(TOPIC_ROWS.values()):
        givers = ", ".join(f"`{name}`" for name in row.synonyms)
        parts.append(_line(row, f"{givers} | {row.effect.value}"))
    parts.append(_GROUP)
    for row in _shown(row for row in GROUP_ROWS.values() if row.effect is Effect.READ):
        parts.append(_line(row, ", ".join(f"`{name}`" for name in row.synonyms)))
    rows_without_effect = [row for row in ROWS.values() if row.effect is Effect.KEPT]
    parts.append(_WITHOUT_EFFECT)
    parts += [_line(row, row.mutability.value) for row in _shown(rows_without_effect)]
    parts.append(_END)
    return "".join(parts)


def as_text() -> str:
    """Return a `name=default` line per broker config."""
    return "".join(f"{row.name}={row.default or ''}\n" for row in _shown(BROKER_ROWS.values()))


def _shown(rows: Iterable[ConfigRow]) -> Iterator[ConfigRow]:
    return (row for row in sorted(rows, key=lambda row: row.name) if not row.internal)


def _line(row: ConfigRow, last: str) -> str:
    default = "" if row.default is None else f"`{row.default}`" if row.default else "empty"
    kind = row.type.name.lower()
    return f"| `{row.name}` | {kind} | {default} | {_allowed(row)} | {row.doc} | {last} |\n"


def _allowed(row: ConfigRow) -> str:
    if row.choices:
        return ", ".join(row.choices)
    minimum, maximum = row.at_least, row.at_most
    if minimum is not None and maximum is not None:
        text = f"{minimum} to {maximum}"
    elif minimum is not None:
        text = f"at least {minimum}"
    else:
        return ""
    return text if row.also is None else f"{text}, or {row.also}"
