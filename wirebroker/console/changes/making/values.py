"""The values of a change: from a form or from JSON, checked by its fields."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.text import few_of
from wirebroker.client.errors import did_you_mean
from wirebroker.console.changes.change import ChangeError, FieldKind
from wirebroker.console.changes.field_values import lines_of
from wirebroker.console.changes.making.kept import shortened

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.changes.change import ChangeKind, Field

YES: Final = "yes"
NO: Final = "no"
_HIDDEN: Final = "(hidden)"
_MOST_TARGETS: Final = 3
_MOST_OF_RECORD: Final = 1000
_NUMBER: Final = re.compile(r"-?[0-9]{1,19}")
_UNSTRIPPED: Final = frozenset({FieldKind.LONG_TEXT, FieldKind.PASSWORD})


def values_of_form(kind: ChangeKind, form: Mapping[str, str]) -> dict[str, str]:
    """Return the values of a sent form, not checked; a missing YES_NO is an unchecked box."""
    values: dict[str, str] = {}
    for field in kind.fields:
        text = form.get(field.name, "")
        if field.kind is FieldKind.YES_NO:
            text = YES if text == YES else NO
        elif field.kind is FieldKind.LONG_TEXT:
            text = text.replace("\r\n", "\n")  # browsers send these ends of lines
        values[field.name] = text
    return values


def values_of_json(kind: ChangeKind, body: Mapping[str, Any]) -> dict[str, str]:
    """Return the values of a JSON object, not checked.

    Raises:
        ChangeError: A field is unknown, or its value is not a text, number or boolean.
    """
    names = [field.name for field in kind.fields]
    values: dict[str, str] = {}
    for name, value in body.items():
        if name not in names:
            hint = did_you_mean(name, names)
            raise ChangeError(f"{kind.name} has no field {name[:80]!r}{hint}", name[:80])
        if value is not None:
            values[name] = _text_of_json(name, value)
    return values


def _text_of_json(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return YES if value else NO
    if not isinstance(value, str | int):
        raise ChangeError(f"{name}: write a string, a whole number, true, false or null", name)
    try:
        text = str(value)
        text.encode()
    except ValueError:  # more than 4,300 digits, or half a character
        raise ChangeError(f"{name}: the value is not a text", name) from None
    else:
        return text


def checked_values(kind: ChangeKind, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values as `ChangeKind.prepare` takes them.

    Raises:
        ChangeError: A value is missing or has another form.
    """
    return {field.name: _checked(field, values.get(field.name, "")) for field in kind.fields}


def _checked(field: Field, text: str) -> str:
    if field.kind not in _UNSTRIPPED:
        text = text.strip()
    if not text:
        if field.is_required and field.kind is not FieldKind.YES_NO:
            raise ChangeError(f"{field.label}: a value is missing", field.name)
        return field.default or (NO if field.kind is FieldKind.YES_NO else "")
    if field.kind is FieldKind.NUMBER and not _NUMBER.fullmatch(text):
        raise ChangeError(f"{field.label}: {text[:40]!r} is not a whole number", field.name)
    if field.kind is FieldKind.YES_NO and text not in {YES, NO}:
        raise ChangeError(f"{field.label}: write yes or no", field.name)
    if field.kind is FieldKind.CHOICE and text not in {value for value, _ in field.choices}:
        known = ", ".join(value for value, _ in field.choices)
        raise ChangeError(f"{field.label}: {text[:80]!r} is not one of {known}", field.name)
    return text


def target_text(kind: ChangeKind, values: Mapping[str, str]) -> str:
    """Return the target of a change.

    For several lines, return the first three and the number of others.
    """
    (target,) = (field for field in kind.fields if field.name == kind.target)
    if target.kind is not FieldKind.LONG_TEXT:
        return values[kind.target]
    return few_of(lines_of(values, kind.target), _MOST_TARGETS)


def logged_values(kind: ChangeKind, values: Mapping[str, str]) -> dict[str, str]:
    """Return the values for the audit log: without passwords, and shortened.

    The lines of a LONG_TEXT are stripped and empty ones dropped first, as nothing may be hidden
    behind the characters that are kept.
    """
    return {field.name: _logged(field, values[field.name]) for field in kind.fields}


def _logged(field: Field, text: str) -> str:
    if field.kind is FieldKind.PASSWORD:
        return _HIDDEN if text else ""
    if field.kind is FieldKind.LONG_TEXT:
        text = "\n".join(line.strip() for line in text.splitlines() if line.strip())
    return shortened(text, _MOST_OF_RECORD) if field.is_record else shortened(text)
