"""The configs that no code reads: the table compared with the code."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from wirebroker.config.rows.row import Effect
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import BROKER_ROWS, ROWS_WITHOUT_EFFECT

ROOT = Path(__file__).parents[4]
# Modules that list, refuse or set configs of other brokers, but do not read them.
TABLES = re.compile(
    r".*/config/(table/\w+|rows/(topic|topic_field|forms)|groups|lookup|sources/dynamic|protection"
    r"|docs|describe)\.py"
    r"|.*/wirebroker/(client/(\w+/)?|cli/(verbs|plumbing)/|broker/workers/)\w+\.py"
    r"|.*/wirebroker/cli/(table|docs|verb_group|unserved_scripts)\.py"
    r"|.*/wirebroker/console/model/settings\.py"
)


@cache
def _sources() -> str:
    folders = ("codecs", "storage", "coordinator", "wirebroker")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.py"))
    return "".join(file.read_text() for file in files if not TABLES.fullmatch(file.as_posix()))


@cache
def _read_names() -> set[str]:
    """Return the names of all attributes, and of the configs that the controller reads by name."""
    # TopicSettings' own properties read fields on behalf of others.
    text = _sources() + (ROOT / "wirebroker/config/rows/topic.py").read_text()
    return {*re.findall(r"\.(\w+)", text), *re.findall(r'\bname = "([^"]+)"', text)}


def _is_topic_config_read(name: str) -> bool:
    if name == "internal.segment.bytes":
        name = "segment.bytes"
    return not _read_names().isdisjoint({name, name.replace(".", "_")})


def test_configs_without_a_reader_are_marked_as_such() -> None:
    sources = _sources()
    unread = {
        name
        for name, row in BROKER_ROWS.items()
        # With the same name the source may mean the topic's config.
        if (f'"{name}"' not in sources or name == row.topic_name)
        and not (row.topic_name and _is_topic_config_read(row.topic_name))
    }
    documented = {name for name, row in BROKER_ROWS.items() if row.effect is Effect.SHOWN}
    assert unread == documented


def test_configs_without_effect_are_not_read() -> None:
    sources = _sources()
    assert [name for name in ROWS_WITHOUT_EFFECT if f'"{name}"' in sources] == []


def test_topic_configs_without_a_reader_are_marked_as_such() -> None:
    unread = {name for name in TOPIC_ROWS if not _is_topic_config_read(name)}
    assert unread == {name for name, row in TOPIC_ROWS.items() if row.effect is Effect.SHOWN}
