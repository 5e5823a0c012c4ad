"""Kinds of groups that this broker serves, by the scripts that need them."""

from __future__ import annotations

from typing import Final

from tests.support.protocol.served_keys import served_keys
from wirebroker.codecs.api_keys import ApiKey

# Also by the names of transcripts.
_NEEDED: Final = {
    "kafka-share-groups": ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    "kafka-console-share-consumer": ApiKey.SHARE_FETCH,
    "kafka-streams-groups": ApiKey.STREAMS_GROUP_HEARTBEAT,
    "share_groups": ApiKey.SHARE_FETCH,
    "streams_groups": ApiKey.STREAMS_GROUP_HEARTBEAT,
}


def is_served(script: str) -> bool:
    """Return whether this broker serves what a script or a transcript needs."""
    return _NEEDED.get(script, ApiKey.METADATA) in served_keys()
