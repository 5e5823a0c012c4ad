"""Records as lines of JSON."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from wirebroker.client.topics.leaders import TopicPartition
    from wirebroker.codecs.records.record import Record


# Making an encoder takes as long as encoding a short record.
_AS_UTF8: Final = json.JSONEncoder(ensure_ascii=False)
_AS_ASCII: Final = json.JSONEncoder()


def json_line_of(topic_partition: TopicPartition, record: Record) -> bytes:
    """Return a record as JSON; bytes that are not UTF-8 become `{"base64": "…"}`."""
    row = {
        "topic": topic_partition.topic,
        "partition": topic_partition.partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": json_value_of(record.key),
        "value": json_value_of(record.value),
        "headers": [{"key": name, "value": json_value_of(value)} for name, value in record.headers],
    }
    # A header key that is not UTF-8 has surrogates, which need escapes.
    is_text = all(name.isprintable() for name, _ in record.headers)
    encoder = _AS_UTF8 if is_text else _AS_ASCII
    return encoder.encode(row).encode() + b"\n"


def json_value_of(data: bytes | None) -> Any:
    """Return bytes as a value of JSON: text, `{"base64": "…"}` or None."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}
