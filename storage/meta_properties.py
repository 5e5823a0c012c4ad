"""`meta.properties`, which identifies a log directory (format: storage/README.md).

Source: Kafka's MetaProperties (KIP-858 for directory.id); java.util.Properties for the syntax.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from wirebroker.codecs.primitives import uuid_from_text, uuid_text

_KEY_AND_VALUE = re.compile(r"\s*((?:[^\\=:\s]|\\.)+)\s*[=:\s]\s*(.*?)\s*$")
_ESCAPE = re.compile(r"\\(.)")


class MetaProperties(NamedTuple):
    """The contents of `meta.properties`."""

    cluster_id: str
    node_id: int
    directory_id: bytes


def parse_meta_properties(text: str) -> MetaProperties:
    """Parse the file's text; a missing directory.id (before Kafka 3.7) becomes 16 zero bytes.

    Raises:
        ValueError: A property is missing or invalid.
    """
    values: dict[str, str] = {}
    for line in text.splitlines():
        match = _KEY_AND_VALUE.match(line)
        if match and not line.lstrip().startswith(("#", "!")):
            key, value = (_ESCAPE.sub(r"\1", part) for part in match.groups())
            values[key] = value
    if values.get("version") != "1":
        raise ValueError(f"version is {values.get('version')!r}, only 1 is supported")
    for name in ("cluster.id", "node.id"):
        if not values.get(name):
            raise ValueError(f"{name} is missing")
    if not values["node.id"].isdecimal():
        raise ValueError(f"node.id is {values['node.id']!r}, not a number")
    directory_id = values.get("directory.id")
    return MetaProperties(
        values["cluster.id"],
        int(values["node.id"]),
        uuid_from_text(directory_id) if directory_id else bytes(16),
    )


def format_meta_properties(properties: MetaProperties) -> str:
    """Return the file's text."""
    return (
        "#\n"
        f"cluster.id={properties.cluster_id}\n"
        f"directory.id={uuid_text(properties.directory_id)}\n"
        f"node.id={properties.node_id}\n"
        "version=1\n"
    )
