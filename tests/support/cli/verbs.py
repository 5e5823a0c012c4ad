"""The command line as a test uses it, in the test's own process."""

from __future__ import annotations

import json
import sys
import tempfile
from typing import Any, NamedTuple

import pytest

from wirebroker.cli import main as cli


class Said(NamedTuple):
    """What a verb answered."""

    status: int
    out: str
    err: str

    @property
    def lines(self) -> list[str]:
        return self.out.splitlines()

    @property
    def rows(self) -> list[list[str]]:
        """A table's cells, without its titles."""
        return [line.split() for line in self.lines[1:]]


class Verbs:
    """Runs verbs against one cluster."""

    def __init__(self, bootstrap: str, capsys: pytest.CaptureFixture[str]) -> None:
        self.bootstrap = bootstrap
        self._capsys = capsys

    def run(self, *arguments: str) -> Said:
        """Run a verb and return whatever it answers."""
        self._capsys.readouterr()
        status = cli.run([*arguments, "--bootstrap", self.bootstrap])
        return Said(status, *self._capsys.readouterr())

    def do(self, *arguments: str) -> Said:
        """Run a verb that succeeds."""
        said = self.run(*arguments)
        assert said.status == 0, said
        return said

    def feed(self, lines: bytes, *arguments: str) -> Said:
        """Run a verb with these bytes as its standard input."""
        with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
            file.write(lines)
            file.seek(0)
            patch.setattr(sys, "stdin", file)
            return self.run(*arguments)

    def json(self, *arguments: str) -> Any:
        """Run a verb that succeeds, and return its answer."""
        return json.loads(self.do(*arguments, "--output", "json").out)
