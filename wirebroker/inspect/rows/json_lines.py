"""Rows as JSON, one object per line.

Bytes become text if they are UTF-8, else `{"base64": "…"}`; uuids have Kafka's 22 characters.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any, cast

from wirebroker.codecs.primitives import uuid_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.inspect.rows.rows import Row

_UUID_BYTES = 16
_UUID_FIELDS = ("_id", "directories", "log_dirs")


def json_line(row: Row) -> str:
    """Return a row as a line without its end."""
    return json.dumps(plain_json(row), ensure_ascii=False, separators=(",", ":"))


def plain_json(value: Any, name: str = "") -> Any:
    """Convert the value of field `name` to JSON types."""
    if isinstance(value, bytes):
        return _json_bytes(value, name)
    if isinstance(value, dict):
        fields = cast("dict[str, Any]", value)
        return {key: plain_json(field_value, key) for key, field_value in fields.items()}
    if isinstance(value, list | tuple):
        return [plain_json(item, name) for item in cast("Sequence[Any]", value)]
    return value


def _json_bytes(value: bytes, name: str) -> Any:
    if len(value) == _UUID_BYTES and name.endswith(_UUID_FIELDS):
        return uuid_text(value)
    try:
        return value.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(value).decode()}
