"""`partition.metadata`, which holds a partition's topic id."""

from __future__ import annotations

import re
from typing import Final

from wirebroker.codecs.primitives import uuid_from_text, uuid_text

PARTITION_METADATA: Final = "partition.metadata"

_TOPIC_ID_LINE: Final = re.compile(rb"^topic_id: *(\S+)\s*$", re.MULTILINE)


def content_for(topic_id: bytes) -> bytes:
    """Return the file's content for a topic id."""
    return f"version: 0\ntopic_id: {uuid_text(topic_id)}".encode()


def topic_id_in(content: bytes) -> bytes | None:
    """Return the topic id in the file's content, or None.

    Raises:
        ValueError: The id is malformed.
    """
    match = _TOPIC_ID_LINE.search(content)
    return uuid_from_text(match[1].decode()) if match else None
