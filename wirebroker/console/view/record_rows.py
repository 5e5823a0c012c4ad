"""A record as a row of the messages page, and all of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.console.records.views import hex_view, is_text, json_view, text_view
from wirebroker.console.view.links import cluster_url

if TYPE_CHECKING:
    from wirebroker.console.records.queries import FoundRecord

_PREVIEW_BYTES: Final = 400
_PREVIEW_CHARACTERS: Final = 300
_KEY_CHARACTERS: Final = 80


class RecordRow(NamedTuple):
    """A record in a list."""

    record: FoundRecord
    key: str
    value: str
    detail_url: str
    row_id: str


class ByteViews(NamedTuple):
    """A key or value in all forms.

    Attributes:
        kind: null, text or hex: the form that shows most if `json` is None.
        json: None if it is not JSON.
    """

    kind: str
    length: int
    is_cut: bool
    json: str | None
    text: str
    hex: str


def record_row(cluster: str, record: FoundRecord) -> RecordRow:
    """Return a record's row with previews of its key and value."""
    detail_url = cluster_url(
        cluster,
        "topic/record",
        name=record.topic,
        partition=record.partition,
        offset=record.offset,
    )
    return RecordRow(
        record,
        _preview(record.key, _KEY_CHARACTERS),
        _preview(record.value, _PREVIEW_CHARACTERS),
        detail_url,
        f"r-{record.partition}-{record.offset}",
    )


def byte_views(content: bytes | None, length: int) -> ByteViews:
    """Return a key or value in all forms; this may take a second, so call it in a thread."""
    if content is None:
        return ByteViews("null", -1, False, None, "", "")
    kind = "text" if is_text(content) else "hex"
    is_cut = len(content) < length
    as_json = None if is_cut else json_view(content)
    return ByteViews(kind, length, is_cut, as_json, text_view(content), hex_view(content))


def _preview(content: bytes | None, most: int) -> str:
    if content is None:
        return ""
    text = " ".join(text_view(content[:_PREVIEW_BYTES]).split())
    return text if len(text) <= most else text[: most - 1] + "…"
