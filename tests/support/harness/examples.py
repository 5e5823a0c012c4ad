"""The examples in docstrings, as tests."""

from __future__ import annotations

import doctest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

FINDER = doctest.DocTestFinder(exclude_empty=False, recurse=True)


def examples_of(parts: Iterable[type], name: str) -> list[doctest.DocTest]:
    return [
        test for part in parts for test in FINDER.find(part, name, module=False) if test.examples
    ]


def check_example(example: doctest.DocTest, names: dict, capsys) -> None:
    example.globs = dict(names)
    result = doctest.DocTestRunner(verbose=False).run(example, clear_globs=False)
    assert result.attempted
    assert not result.failed, capsys.readouterr().out
