"""Known names of configs, and suggestions for unknown ones."""

from __future__ import annotations

from typing import Final

from wirebroker.config.lookup import base_name
from wirebroker.config.protection import is_about_protection
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import BROKER_ROWS, ROWS, ROWS_WITHOUT_EFFECT

# Kafka passes configs with these prefixes to plugins.
_PLUGIN_PREFIXES: Final = ("config.providers.", "rlmm.config.", "rsm.config.")
# Below this ratio, shared words make names similar.
_LEAST_LIKENESS: Final = 0.8


def is_known(name: str) -> bool:
    """Return whether Kafka's brokers or wirebroker have this config."""
    name = base_name(name)
    return name in ROWS or is_about_protection(name) or name.startswith(_PLUGIN_PREFIXES)


def with_hint(name: str) -> str:
    """Return an unknown name, with a similar known one."""
    if name in TOPIC_ROWS:
        broker_names = TOPIC_ROWS[name].synonyms
        instead = f", the broker's is {broker_names[0]}" if broker_names else ""
        return f"{name} (a topic config{instead})"
    from difflib import get_close_matches  # noqa: PLC0415

    candidates = [*BROKER_ROWS, *ROWS_WITHOUT_EFFECT]
    like = get_close_matches(name.lower(), candidates, n=1, cutoff=_LEAST_LIKENESS)
    return f"{name} (did you mean {like[0]}?)" if like else name
