"""Which names are Kafka's or ours, and which of them somebody may have meant.

A leaf.
"""

from __future__ import annotations

from typing import Final

from wirebroker.config.lookup import base_name
from wirebroker.config.protection import is_about_protection
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import BROKER_ROWS, ROWS, ROWS_WITHOUT_EFFECT

# Of plugins: Kafka hands on whatever begins so.
_PLUGIN_PREFIXES: Final = ("config.providers.", "rlmm.config.", "rsm.config.")
# Of 1; below, the likeness is mostly that of the words which all names share.
_LEAST_LIKENESS: Final = 0.8


def is_known(name: str) -> bool:
    """Tell whether a broker of Kafka's, or this one, has a config of this name."""
    name = base_name(name)
    return name in ROWS or is_about_protection(name) or name.startswith(_PLUGIN_PREFIXES)


def with_hint(name: str) -> str:
    """Return an unknown name, and which one was perhaps meant."""
    if name in TOPIC_ROWS:
        broker_names = TOPIC_ROWS[name].synonyms
        instead = f", the broker's is {broker_names[0]}" if broker_names else ""
        return f"{name} (a topic config{instead})"
    from difflib import get_close_matches  # noqa: PLC0415 - for mistakes alone

    candidates = [*BROKER_ROWS, *ROWS_WITHOUT_EFFECT]
    like = get_close_matches(name.lower(), candidates, n=1, cutoff=_LEAST_LIKENESS)
    return f"{name} (did you mean {like[0]}?)" if like else name
