"""One step: a command of a transcript, with generated arguments.

A step is text in the form of tests/transcripts/script.py, so a run's steps form a transcript. An
`Expression` is a part of its arguments that only a driver can resolve: a name from the run (`T1`,
`P2`, `M1`) or a helper of tests/transcripts/batches.py.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from tests.support.protocol.message_schemas import schema_of
from tests.transcripts.script import Step
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.messages import request_message

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from compiling.messages.schema import StructSchema

_NUMBER = re.compile(r"-?\d+")


class Expression:
    """Verbatim text in a step's arguments: a name, a call, a sum."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Expression) and self.text == other.text

    def __hash__(self) -> int:
        return hash(self.text)

    def __add__(self, other: object) -> Expression:
        return Expression(f"{self!r} + {other!r}")


def call(helper: str, *positional: object, **named: object) -> Expression:
    words = [repr(value) for value in positional]
    words += [f"{name}={value!r}" for name, value in named.items()]
    return Expression(f"{helper}({', '.join(words)})")


class Answer:
    """A broker's response to a step: printed lines, by path."""

    def __init__(self, lines: Sequence[str]) -> None:
        self.lines = list(lines)
        self._values: dict[str, str] = {}
        for line in lines:
            path, _, value = line.partition(" = ")
            self._values[path] = value

    def get(self, path: str, default: str = "") -> str:
        return self._values.get(path, default)

    def number(self, path: str, default: int = -1) -> int:
        """Return the leading number of a printed value."""
        match = _NUMBER.match(self.get(path))
        return default if match is None else int(match[0])

    def name(self, path: str, letter: str) -> Expression | None:
        """Return the name of an id, without a client id before it (`transcript-M1`)."""
        match = re.search(rf"\b{letter}\d+$", self.get(path).strip('"'))
        return None if match is None else Expression(match[0])

    def errors(self) -> set[int]:
        codes = (self.number(path) for path in self._values if path.endswith("error_code"))
        return set(codes)

    @property
    def is_good(self) -> bool:
        """Return whether there is a response without errors."""
        return not self.errors() - {0} and not self.is_closed

    @property
    def is_closed(self) -> bool:
        return self.lines == ["the connection is closed"]


def spelled(key: ApiKey) -> str:
    return "".join(word.capitalize() for word in key.name.split("_"))


def send(key: ApiKey, version: int, fields: Mapping[str, Any], *, to: str = "first") -> Step:
    """Return a request; fields that its version lacks are left out."""
    return command(["send", spelled(key), str(version), "to", to], _fitting(key, version, fields))


def begin(key: ApiKey, version: int, fields: Mapping[str, Any], *, name: str) -> Step:
    """Return a request whose response is awaited later, on its own connection."""
    return command(
        ["begin", spelled(key), str(version), "as", name], _fitting(key, version, fields)
    )


def command(words: Iterable[str], arguments: Mapping[str, Any] | None = None) -> Step:
    lines = [f"{name} = {value!r}" for name, value in (arguments or {}).items()]
    return Step(
        line_number=0,
        command=tuple(words),
        arguments="\n".join(lines),
        argument_lines=tuple(f"    {line}" for line in lines),
    )


def _fitting(key: ApiKey, version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    known_version = min(version, API_VERSIONS[key].max_version)
    return _fit(schema_of(request_message(key)).body, known_version, fields)


def _fit(schema: StructSchema, version: int, fields: Mapping[str, Any]) -> dict[str, Any]:
    fields_by_name = {field.name: field for field in schema.fields}
    assert fields.keys() <= fields_by_name.keys(), (
        f"{schema.name} has no {fields.keys() - fields_by_name.keys()}"
    )
    fitting: dict[str, Any] = {}
    for name, value in fields.items():
        if version not in fields_by_name[name].versions:
            continue
        inner = fields_by_name[name].struct
        if inner and isinstance(value, list):
            fitting[name] = [_fit(inner, version, element) for element in value]
        elif inner and isinstance(value, dict):
            fitting[name] = _fit(inner, version, value)
        else:
            fitting[name] = value
    return fitting
