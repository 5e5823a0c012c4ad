"""docs/configs.md, made from the config table: `wirebroker configs --markdown > docs/configs.md`.

A leaf.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config_names import NAMES_WITHOUT_EFFECT
from wirebroker.config_table import BROKER_ROWS, ONE_NODE_PROFILE
from wirebroker.config_topic import TOPIC_ROWS

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from wirebroker.config_row import ConfigRow

_INTRODUCTION: Final = """\
# Configs

Every config that has an effect; made from the table in the source, so don't edit it
(`wirebroker configs --markdown`). Names, types, ranges and defaults are Apache Kafka 4.3's; names
that begin with `wirebroker.` are ours. The last column tells whether the config is meant to be
changed while the broker runs (Kafka's levels).

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

| config | type | default | allowed | what it does | changed |
| --- | --- | --- | --- | --- | --- |
"""

_TOPIC: Final = """
## Topic configs

Set per topic when it is created or later; the default is the value of the broker config named
last, the first of several that is set.

| config | type | default | allowed | what it does | broker config |
| --- | --- | --- | --- | --- | --- |
"""

_OTHERS: Final = """
## Without effect

Kafka has {count} more broker configs. They are accepted, with one warning line, and do nothing:

{names}
"""


def as_markdown() -> str:
    """Return the whole of docs/configs.md."""
    parts = [_INTRODUCTION, _PROFILE]
    parts += [f"| `{name}` | `{value}` |\n" for name, value in ONE_NODE_PROFILE.items()]
    parts.append(_BROKER)
    parts += [_line(row, row.mutability.value) for row in _shown(BROKER_ROWS.values())]
    parts.append(_TOPIC)
    for row in _shown(TOPIC_ROWS.values()):
        parts.append(_line(row, ", ".join(f"`{name}`" for name in row.synonyms)))
    names = ", ".join(f"`{name}`" for name in sorted(NAMES_WITHOUT_EFFECT))
    parts.append(_OTHERS.format(count=len(NAMES_WITHOUT_EFFECT), names=names))
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
