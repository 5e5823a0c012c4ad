"""Output of verbs: lines, aligned tables, JSON.

Colors are used on terminals, unless NO_COLOR is set.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any, Final

import click

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

_BOLD: Final = "\x1b[1m"
_PLAIN: Final = "\x1b[0m"


class Printer:
    """Standard output as a context, which turns OSErrors into one-line click.ClickExceptions."""

    def __init__(self) -> None:
        self._out = sys.stdout

    def line(self, text: str) -> None:
        """Print a line."""
        self._out.write(text + "\n")

    def write(self, data: bytes) -> None:
        """Write and flush bytes."""
        self._out.buffer.write(data)
        self._out.buffer.flush()

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, _: object
    ) -> bool:
        try:
            self._out.flush()
        except BrokenPipeError as broken:
            error = error or broken
        if isinstance(error, BrokenPipeError):
            # Otherwise the interpreter would report an error at its exit.
            os.dup2(os.open(os.devnull, os.O_WRONLY), self._out.fileno())
            return True
        if isinstance(error, OSError):
            reason = error.strerror or str(error)
            raise click.ClickException(f"{error.filename or 'output'}: {reason}") from None
        return False


class Output(Printer):
    """A verb's output: lines, or one JSON document if `is_json`."""

    def __init__(self, *, is_json: bool) -> None:
        super().__init__()
        self.is_json = is_json
        self._has_colours = self._out.isatty() and not os.environ.get("NO_COLOR")

    def show(self, data: Any, lines: Iterable[str]) -> None:
        """Print a result in either form."""
        if self.is_json:
            import json  # noqa: PLC0415 - only for JSON

            self.line(json.dumps(data, ensure_ascii=False, indent=2))
            return
        for line in lines:
            self.line(line)

    def table(self, rows: Sequence[Mapping[str, Any]], columns: Sequence[str]) -> list[str]:
        """Return rows as aligned lines below titles; numbers are right-aligned."""
        titles = [column.upper().replace("_", "-") for column in columns]
        cells = [[cell(row[column]) for column in columns] for row in rows]
        widths = [max(map(len, column)) for column in zip(titles, *cells, strict=True)]
        is_right = [_is_numbers([row[column] for row in rows]) for column in columns]
        lines = [
            "  ".join(
                text.rjust(width) if right else text.ljust(width)
                for text, width, right in zip(line, widths, is_right, strict=True)
            ).rstrip()
            for line in [titles, *cells]
        ]
        return [self.title(lines[0]), *lines[1:]]

    def title(self, text: str) -> str:
        """Return a title, bold on a terminal."""
        return f"{_BOLD}{text}{_PLAIN}" if self._has_colours else text


def _is_numbers(values: Sequence[Any]) -> bool:
    kinds: set[type] = {type(value) for value in values if value is not None}
    return kinds == {int}


def cell(value: Any) -> str:
    """Return the text of a value in a table."""
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ",".join(map(str, value)) or "-"  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return str(value)


def tell(text: str) -> None:
    """Print a line to standard error."""
    click.echo(text, err=True)
