"""The compiled twin: which tree is tested, and that a list of modules says what is compiled."""

from __future__ import annotations

import ast
import importlib
import os
from importlib.machinery import EXTENSION_SUFFIXES

import pytest

from compiling.modules import compiled_names, compiled_paths
from tests.project_files import ROOT
from wirebroker import version

# Set by `make test-compiled`.
_IS_COMPILED = os.environ.get("WIREBROKER_TESTS_EXPECT") == "compiled"


@pytest.mark.parametrize("name", compiled_names())
def test_each_module_of_the_hot_path_is_compiled_in_the_compiled_tree_alone(name):
    file = importlib.import_module(name).__file__
    assert file is not None
    assert file.endswith(tuple(EXTENSION_SUFFIXES) if _IS_COMPILED else ".py")


def test_the_version_says_whether_it_is_compiled():
    assert version.is_compiled() is _IS_COMPILED
    assert version.version_text().endswith(" (compiled)") is _IS_COMPILED


@pytest.mark.parametrize("path", compiled_paths())
def test_no_name_stands_for_two_kinds_of_exceptions_in_one_function(path):
    """A compiled local has one type: the second handler would raise TypeError."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for function in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for handler in ast.walk(function):
                if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type:
                    kind = kinds.setdefault((function.name, handler.name), set())
                    kind.add(ast.unparse(handler.type))
    assert not [place for place, kind in kinds.items() if len(kind) > 1]
