"""Fields with a record: its key, value and headers, as text, JSON or hexadecimal bytes."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.records.json_lines import headers_of_json, json_headers_of
from wirebroker.codecs.json_text import parse_json
from wirebroker.console.changes.change import ChangeError, Field, FieldKind
from wirebroker.console.records.views import is_text, name_view, text_view

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.records.batch import BareRecord
    from wirebroker.codecs.records.record import Headers

# The default of max.message.bytes.
MOST_BYTES: Final = 1 << 20
_MOST_HEADERS: Final = 100
# Of a prefilled field: sent by a form, a character may have nine.
_MOST_EDITED_CHARACTERS: Final = 32 << 10
# Of a key or value in a plan.
_SHOWN_CHARACTERS: Final = 200

TEXT: Final = "text"
_JSON: Final = "json"
_HEX: Final = "hex"
_NULL: Final = "null"
SAME: Final = "same"

_KEY_FORMS: Final = ((TEXT, "Text; no key if it is empty"), (_HEX, "Bytes, in hexadecimal"))
_VALUE_FORMS: Final = (
    (TEXT, "Text"),
    (_JSON, "JSON, which is checked"),
    (_HEX, "Bytes, in hexadecimal"),
    (_NULL, "Null, which deletes the key in a compacted topic"),
)
_HEADERS_HELP: Final = (
    'A line for each, NAME=VALUE; or a list in JSON, such as [{"key": "trace", "value": null}].'
)


def record_fields(*, has_source: bool) -> tuple[Field, ...]:
    """Return the fields; with a source, its key, value and headers are the defaults."""
    same = ((SAME, "As in the record"),) if has_source else ()
    default = SAME if has_source else TEXT
    fields = [
        Field("key_form", "Key is", FieldKind.CHOICE, choices=(*same, *_KEY_FORMS)),
        Field("key", "Key", FieldKind.LONG_TEXT, is_required=False),
        Field("value_form", "Value is", FieldKind.CHOICE, choices=(*same, *_VALUE_FORMS)),
        Field("value", "Value", FieldKind.LONG_TEXT, is_required=False),
    ]
    if has_source:
        choices = (*same, (TEXT, "As below"))
        fields.append(Field("headers_form", "Headers are", FieldKind.CHOICE, choices=choices))
    fields.append(Field("headers", "Headers", FieldKind.LONG_TEXT, _HEADERS_HELP))
    return tuple(
        field._replace(
            is_required=False,
            default=default if field.kind is FieldKind.CHOICE else "",
            is_record=field.kind is FieldKind.LONG_TEXT,
        )
        for field in fields
    )


def record_of(values: Mapping[str, str], source: BareRecord | None = None) -> BareRecord:
    """Return the record of the fields.

    Raises:
        ChangeError: A field has another form, or the record is too large.
    """
    _check_unused(values, source)
    key = _bytes_of(values, "key")
    value = _bytes_of(values, "value")
    if source is not None and values["key_form"] == SAME:
        key = source[0]
    if source is not None and values["value_form"] == SAME:
        value = source[1]
    headers: Headers
    if source is not None and values["headers_form"] == SAME:
        headers = source[2]
    else:
        headers = _headers_of(values["headers"])
    size = len(key or b"") + len(value or b"")
    size += sum(len(name) + len(content or b"") for name, content in headers)
    if size > MOST_BYTES and source is None:
        raise ChangeError(f"a record of at most {MOST_BYTES:,} bytes can be entered", "value")
    return key, value, headers


def _check_unused(values: Mapping[str, str], source: BareRecord | None) -> None:
    """Refuse a key, value or headers that the chosen form does not use.

    A form that was opened with a record has its texts, which may remain.
    """
    for name in ("key", "value", "headers"):
        form, text = values.get(f"{name}_form", TEXT), values[name]
        if form in {SAME, _NULL} and text:
            if source is not None and text == fields_of(source)[name]:
                continue
            noun = "headers are" if name == "headers" else f"a {name} is"
            label = "Headers are" if name == "headers" else f"{name.capitalize()} is"
            choice = "As in the record" if form == SAME else "Null"
            raise ChangeError(
                f"{noun} entered, but “{label}” says “{choice}”: choose the form of the {name}, or"
                " clear this field",
                name,
            )


def _bytes_of(values: Mapping[str, str], field: str) -> bytes | None:
    form, text = values[f"{field}_form"], values[field]
    if form in {SAME, _NULL} or (field == "key" and form == TEXT and not text):
        return None
    try:
        if form == _HEX:
            return bytes.fromhex(text)
        data = text.encode()
        if form == _JSON:
            parse_json(data)
    except UnicodeEncodeError:
        raise ChangeError(f"the {field} has a lone surrogate, which is not UTF-8", field) from None
    except ValueError as error:
        raise ChangeError(f"the {field} is not {_FORM_NAMES[form]}: {error}", field) from None
    return data


_FORM_NAMES: Final = {_HEX: "a row of bytes such as 00 ff", _JSON: "JSON"}


def _headers_of(text: str) -> Headers:
    try:
        if text.lstrip().startswith("["):
            headers = headers_of_json(parse_json(text))
        else:
            headers = [_header_of(line) for line in text.splitlines() if line.strip()]
    except ValueError as error:
        raise ChangeError(f"the headers cannot be used: {error}", "headers") from None
    if len(headers) > _MOST_HEADERS:
        raise ChangeError(f"write at most {_MOST_HEADERS} headers", "headers")
    return headers


def _header_of(line: str) -> tuple[str, bytes | None]:
    name, equals, value = line.partition("=")
    if not equals:
        raise ValueError(f"{line[:100]!r} is no header: write NAME=VALUE")
    return name.strip(), value.encode()


# --- a record as fields


def fields_of(record: BareRecord) -> dict[str, str]:
    """Return the values of the fields for a record; bytes that are not text as hexadecimal.

    What is longer than a form can send stays as in the record.
    """
    key, value, headers = record
    values = {
        **_byte_fields("key", key),
        **_byte_fields("value", value),
        "headers_form": TEXT,
        "headers": _headers_text(headers),
    }
    for name in ("key", "value", "headers"):
        if len(values[name]) > _MOST_EDITED_CHARACTERS:
            values |= {name: "", f"{name}_form": SAME}
    return values


def _byte_fields(name: str, data: bytes | None) -> dict[str, str]:
    """Return the form in which a text area keeps bytes, and their text."""
    if data is None:
        # Empty text is no key.
        return {name: "", f"{name}_form": TEXT if name == "key" else _NULL}
    text = _plain_text(data)
    if text is None or (name == "key" and not text):
        return {name: data.hex(" "), f"{name}_form": _HEX}
    return {name: text, f"{name}_form": TEXT}


def _plain_text(data: bytes) -> str | None:
    """Return text that a text area does not change, or None."""
    if not is_text(data) or b"\r" in data or b"\0" in data:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:  # after the part that `is_text` looks at
        return None


def _headers_text(headers: Headers) -> str:
    """Return lines, or JSON if a header does not fit on one."""
    lines: list[str] = []
    for name, content in headers:
        line = f"{name}={text_view(content or b'')}"
        try:
            is_plain = content is not None and _header_of(line) == (name, content)
        except ValueError:
            is_plain = False
        if not is_plain or line.splitlines() != [line] or line.startswith("["):
            return _json_text(json_headers_of(headers))
        lines.append(line)
    return "\n".join(lines)


def _json_text(rows: list[dict[str, Any]]) -> str:
    return json.dumps(rows)


# --- lines of a plan


def record_lines(record: BareRecord) -> list[str]:
    """Return lines with the key, value and headers, shortened."""
    key, value, headers = record
    lines = [f"key: {_shown(key)}", f"value: {_shown(value)}"]
    return [*lines, *(f"header {name_view(name)}: {_shown(content)}" for name, content in headers)]


def _shown(data: bytes | None) -> str:
    if data is None:
        return "null"
    text = text_view(data[: 4 * _SHOWN_CHARACTERS]) if is_text(data) else data[:64].hex(" ")
    is_cut = len(text) > _SHOWN_CHARACTERS or len(data) > 4 * _SHOWN_CHARACTERS
    end = "…" if is_cut else ""
    unit = "byte" if len(data) == 1 else "bytes"
    return f"{text[:_SHOWN_CHARACTERS]}{end} ({len(data):,} {unit})"
