r"""Lines of `kafka-console-producer`: headers, key and value with separators.

h1:v1,h2:v2 \t key \t value         with parse.headers=true and parse.key=true
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from wirebroker.cli.kafka.plumbing.properties import is_true
from wirebroker.client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.codecs.records.batch import BareRecord


class LineReader:
    """Converts lines to records; counts lines for error messages."""

    __slots__ = (
        "_count",
        "_header_separator",
        "_headers_delimiter",
        "_headers_separator",
        "_ignores_errors",
        "_key_separator",
        "_null",
    )

    def __init__(self, properties: Mapping[str, str]) -> None:
        """Take the properties; unknown ones have no effect, as in Kafka.

        Raises:
            click.UsageError: Separators are equal.
        """

        def separator(name: str, otherwise: str, *, unless: str | None = None) -> bytes | None:
            if unless is not None and not is_true(properties, unless):
                return None
            return properties.get(name, otherwise).encode()

        self._key_separator = separator("key.separator", "\t", unless="parse.key")
        self._headers_delimiter = separator("headers.delimiter", "\t", unless="parse.headers")
        self._headers_separator = properties.get("headers.separator", ",").encode()
        self._header_separator = properties.get("headers.key.separator", ":").encode()
        marker = properties.get("null.marker")
        self._null = None if marker is None else marker.encode()
        self._ignores_errors = is_true(properties, "ignore.error")
        self._count = 0
        used = [self._headers_separator, self._header_separator]
        used += [
            delimiter
            for delimiter in (self._headers_delimiter, self._null)
            if delimiter is not None
        ]
        if len(set(used)) < len(used) or not all(used):
            raise click.UsageError("headers need separators that differ, also from null.marker")

    def record_of(self, line: bytes) -> BareRecord:
        """Return a line's record; raise ClientError if a separator is missing."""
        self._count += 1
        headers, line = self._cut(line, self._headers_delimiter, "headers delimiter")
        key, value = self._cut(line, self._key_separator, "key separator")
        rows: list[tuple[str, bytes | None]] = []
        if headers is not None and headers != self._null:
            rows = [self._header(pair) for pair in headers.split(self._headers_separator)]
        return self._or_null(key), self._or_null(value), rows

    def _cut(self, line: bytes, separator: bytes | None, name: str) -> tuple[bytes | None, bytes]:
        if separator is None:
            return None, line
        before, found_separator, after = line.partition(separator)
        if found_separator:
            return before, after
        if self._ignores_errors:
            return None, line
        text = line.decode(errors="replace")
        raise ClientError(f"No {name} found on line number {self._count}: '{text}'")

    def _header(self, pair: bytes) -> tuple[str, bytes | None]:
        name, found_separator, value = pair.partition(self._header_separator)
        if not found_separator and not self._ignores_errors:
            raise ClientError(
                f"No header key separator found in pair '{pair.decode(errors='replace')}' on line"
                f" number {self._count}"
            )
        header_value = self._or_null(value) if found_separator else None
        return name.decode("utf-8", "surrogateescape"), header_value

    def _or_null(self, data: bytes | None) -> bytes | None:
        return None if data == self._null else data
