"""The compiled tree: its selection, and the list of compiled modules."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import subprocess
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import PurePath
from typing import Any

import pytest

from compiling.modules import compiled_names, compiled_paths
from tests.support.harness.project_files import ROOT
from tests.support.records.batches import batch
from wirebroker.base import version
from wirebroker.codecs.hot import repeated_frame
from wirebroker.codecs.records import plain_batch
from wirebroker.codecs.records import walk as record_walk
from wirebroker.net.sockets import socket_calls

LAYERS = ("codecs", "coordinator", "storage")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_IS_COMPILED = os.environ.get("WIREBROKER_TESTS_EXPECT") == "compiled"


@pytest.mark.parametrize("name", compiled_names())
def test_hot_path_modules_are_compiled_only_in_the_compiled_tree(name):
    file = importlib.import_module(name).__file__
    assert file is not None
    assert file.endswith(tuple(EXTENSION_SUFFIXES) if _IS_COMPILED else ".py")


def test_compiled_run_contains_the_tests_of_each_compiled_module():
    """`COMPILED_TESTS` (Makefile), which includes this file."""
    chosen = _compiled_tests()
    assert PurePath(__file__).relative_to(ROOT) in chosen
    for path in compiled_paths():
        folder = _test_folder(PurePath(path))
        assert any(folder.is_relative_to(name) or name.is_relative_to(folder) for name in chosen)


def _test_folder(module: PurePath) -> PurePath:
    """Return the folder of a compiled module's tests."""
    in_layer = module.relative_to("wirebroker").parent
    of_layer = PurePath("tests/unit", in_layer)
    return of_layer if in_layer.parts[0] in LAYERS else PurePath("tests/unit/wirebroker", in_layer)


def _compiled_tests() -> list[PurePath]:
    """Return the folders and files of `make test-compiled`."""
    command = ["make", "--silent", "--eval", "print: ; @echo $(COMPILED_TESTS)", "print"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return [PurePath(word) for word in done.stdout.split() if not word.startswith("-")]


def test_c_extensions_exist_only_in_the_compiled_tree():
    for name in ("codecs._hot", "net.sockets._calls", "net.pages._page_threads"):
        assert (importlib.util.find_spec(f"wirebroker.{name}") is not None) is _IS_COMPILED
    for function in (
        socket_calls.receive,
        socket_calls.send,
        plain_batch.checked_header,
        plain_batch.place,
        repeated_frame.match,
    ):
        assert inspect.isbuiltin(function) is _IS_COMPILED
    assert record_walk.RecordWalker.__module__.endswith("_hot") is _IS_COMPILED


@pytest.mark.skipif(not _IS_COMPILED, reason="Python checks by itself")
def test_c_functions_check_their_arguments():
    records = memoryview(bytearray(batch(b"a")))
    header = plain_batch.checked_header(records, True)
    place: Any = plain_batch.place
    few_or_many: tuple[Any, ...]
    wrong: tuple[Any, ...]
    check: Any = plain_batch.checked_header
    for few_or_many in ((), (records,), (records, True, True)):
        with pytest.raises(TypeError):
            check(*few_or_many)
    walker: Any = record_walk.RecordWalker
    for wrong in ((), (1,), (1, 2, 3, 4, 5, 6, 7), (None, 1), (1, 1 << 64)):
        with pytest.raises((TypeError, OverflowError)):
            walker(*wrong)
    with pytest.raises(TypeError):
        walker(1, 2).feed("text")
    for few_or_many in ((), (records, header, 1), (records, header, 1, 2, 3)):
        with pytest.raises(TypeError):
            place(*few_or_many)
    for no_header in (None, (), (0,) * 12, (0,) * 14, [0] * 13):
        with pytest.raises(TypeError):
            place(records, no_header, 1, 2)
    match: Any = repeated_frame.match
    for wrong in ((), (b"", b"1234", b""), (b"", b"123", b"", True), (b"", b"1234", "", True)):
        with pytest.raises(TypeError):
            match(*wrong)
    assert records == batch(b"a")


def test_version_tells_whether_the_build_is_compiled():
    assert version.is_compiled() is _IS_COMPILED
    assert version.version_text().endswith(" (compiled)") is _IS_COMPILED


@pytest.mark.parametrize("path", compiled_paths())
def test_each_exception_variable_of_a_function_has_one_type(path):
    """A compiled local has one type: the second handler would raise TypeError."""
    kinds: dict[tuple[str, str], set[str]] = {}
    for function in ast.walk(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for handler in ast.walk(function):
                if isinstance(handler, ast.ExceptHandler) and handler.name and handler.type:
                    kind = kinds.setdefault((function.name, handler.name), set())
                    kind.add(ast.unparse(handler.type))
    assert not [names for names, kind in kinds.items() if len(kind) > 1]


@pytest.mark.parametrize("path", compiled_paths())
def test_no_nested_function_is_passed_to_a_thread(path):
    """A compiled closure's memory is kept for reuse before its references are released.

    A thread that releases the last reference would clear an object that the loop already reuses.
    """
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, _FUNCTIONS)]
    inner = {
        node.name
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, _FUNCTIONS) and node is not function
    }
    passed_names = [
        argument.id
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in {"in_thread", "begin_in_thread"}
        for argument in node.args
        if isinstance(argument, ast.Name)
    ]
    assert not inner.intersection(passed_names)


@pytest.mark.parametrize("path", compiled_paths())
def test_finally_blocks_contain_no_await(path):
    """After a cancellation there, every later call of the compiled function raises it again.

    mypyc 2.4 keeps the exception in flight through a `finally` in the coroutine's memory, which is
    reused. tests/unit/wirebroker/replication/test_replication.py cancels waiting Fetches.
    """
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    awaited = [
        descendant.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Try)
        for statement in node.finalbody
        for descendant in ast.walk(statement)
        if isinstance(
            descendant, ast.Await | ast.Yield | ast.YieldFrom | ast.AsyncFor | ast.AsyncWith
        )
    ]
    assert not awaited


@pytest.mark.parametrize("path", compiled_paths())
def test_types_of_named_tuples_are_imported_at_run_time(path):
    """A compiled module looks them up when it is imported, and fails without them."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    late_names = {
        alias.asname or alias.name
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for node in ast.walk(block)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    used_names = {
        node.id
        for tuple_class in tree.body
        if isinstance(tuple_class, ast.ClassDef)
        and any(ast.unparse(base) == "NamedTuple" for base in tuple_class.bases)
        for field in tuple_class.body
        if isinstance(field, ast.AnnAssign)
        for node in ast.walk(field.annotation)
        if isinstance(node, ast.Name)
    }
    assert not used_names & late_names
