"""The command line, run in the test's process."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any, NamedTuple

import pytest

from wirebroker.cli import main as cli


class Said(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """The cells of a table without its head."""
        return [line.split() for line in self.lines[1:]]


class Verbs:
    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.bootstrap = bootstrap
        self._capsys = capsys

    def run(self, *arguments: str) -> Said:
        self._capsys.readouterr()
        status = cli.run([*arguments, "--bootstrap", self.bootstrap])
        return Said(status, *self._capsys.readouterr())

    def do(self, *arguments: str) -> Said:
        result = self.run(*arguments)
        assert result.status == 0, result
        return result

    def feed(self, lines: bytes, *arguments: str) -> Said:
        """Run a verb with this standard input."""
        with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
            file.write(lines)
            file.seek(0)
            patch.setattr(sys, "stdin", file)
            return self.run(*arguments)

    def json(self, *arguments: str) -> Any:
        return json.loads(self.do(*arguments, "--output", "json").out)
