"""The records of a share group in `__share_group_state`, as lines.

The order is that of their offsets within each partition of the topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from tests.support.protocol.message_schemas import schema_of
from tests.transcripts.group_records import stored_records
from tests.transcripts.printing import Names, lines_of
from wirebroker.codecs.share_state_records import (
    decode_share_state_key,
    decode_share_state_value,
    share_state_message,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.codecs.api_keys import ApiKey
    from wirebroker.codecs.records.record import Record

    _Ask = Callable[[ApiKey, int, dict[str, Any]], Any]

_TOPIC: Final = "__share_group_state"
_TIMES: Final = frozenset({"create_timestamp", "write_timestamp"})


def share_records(ask: _Ask, group_id: str, names: Names) -> list[str]:
    """Return the lines of a group.

    Args:
        ask: Sends a request and returns the response.
        group_id: Id of the group.
        names: The names of ids so far.
    """
    lines = (_line(record, group_id, names) for record in stored_records(ask, _TOPIC))
    return [line for line in lines if line is not None]


def _line(record: Record, group_id: str, names: Names) -> str | None:
    key = decode_share_state_key(bytes(record.key or b""))
    if key is None or key.group_id != group_id:
        return None
    text = f"{key.kind.name} {names.name('T', key.topic_id)}-{key.partition}"
    if record.value is None:
        # Of a deleted topic in the order of a hash table.
        return f"{text} deleted"
    value = bytes(record.value)
    body = decode_share_state_value(key.kind, value)
    fields: list[str] = []
    for line in lines_of(schema_of(share_state_message(key.kind)), 0, body, names):
        path, _, printed = line.partition(" = ")
        fields.append(f"{path} {'NOW' if path in _TIMES else printed}")
    return f"{record.offset} {text} = {', '.join(fields)}"
