"""docs/configs.md, made from the config table: `wirebroker configs --markdown > docs/configs.md`.

A leaf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.lookup import READ_PER_LISTENER
from wirebroker.config.rows.row import Effect
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import BROKER_ROWS, ONE_NODE_PROFILE, ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.config.rows.row import ConfigRow

_INTRODUCTION: Final = """\
# Configs

Made from the table in the source, so don't edit it (`wirebroker configs --markdown`). Names, types,
ranges and defaults are Apache Kafka 4.4's; names that begin with `wirebroker.` are ours.

The column *changed* tells whether AlterConfigs may change the config while the broker runs, at
Kafka's levels: *cluster-wide* for all brokers or for one, *per-broker* for one only, *read-only*
not at all. A change takes effect at once; what cannot is refused, as Kafka refuses it. The column
*read* tells whether anything here reads the config: what nothing reads is kept and shown, and does
nothing.

Settings are taken from flags (`--set key=value`), then from `KAFKA_` environment variables, then
from the file given by `--config`, then from the default.
"""

_PROFILE: Final = """
## Without a configuration file

`wirebroker serve` without `--config` starts from these settings instead of Kafka's defaults:

| config | value |
| --- | --- |
"""

_BROKER: Final = """
## Broker configs

A listener may have its own value of {of_listeners}, in a
file or by AlterConfigs: `listener.name.<listener>.max.connections`, its name in small letters.

| config | type | default | allowed | what it does | changed | read |
| --- | --- | --- | --- | --- | --- | --- |
"""

_WITHOUT_EFFECT: Final = """
## Without effect

These configs of Kafka have no effect. In a file they are accepted, with one warning line each;
those that ask for protection keep the broker from starting
([guide](guide.md#protection-that-isnt-there-yet)). DescribeConfigs shows their values,
by default Kafka's. AlterConfigs changes those that Kafka can change while it runs, within Kafka's
bounds (threads double or halve at most; classes must be Kafka's own).

| config | type | default | allowed | why | changed |
| --- | --- | --- | --- | --- | --- |
"""

_TOPIC: Final = """
## Topic configs

Set per topic when it is created or later; the default is the value of the broker config named
last, the first of several that is set.

| config | type | default | allowed | what it does | broker config | read |
| --- | --- | --- | --- | --- | --- | --- |
"""


def as_markdown() -> str:
    """Return the whole of docs/configs.md."""
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
    kept = [row for row in ROWS.values() if row.effect is Effect.KEPT]
    parts.append(_WITHOUT_EFFECT)
    parts += [_line(row, row.mutability.value) for row in _shown(kept)]
    return "".join(parts)


def as_text() -> str:
    """Return one `name=default` line per broker config."""
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
    least, most = row.at_least, row.at_most
    if least is not None and most is not None:
        text = f"{least} to {most}"
    elif least is not None:
        text = f"at least {least}"
    else:
        return ""
    return text if row.also is None else f"{text}, or {row.also}"
