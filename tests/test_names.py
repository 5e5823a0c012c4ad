"""Every definition in product code is used by product code; uses in tests do not count.

Exports (`__all__`) of `wirebroker.testing`, its `testcontainers`, `wirebroker.dedup` and
`wirebroker.delivery.client` are exempt: other projects use them, and pytest calls the plugin's
hooks and fixtures.

A name counts as used if it occurs elsewhere in the product: as a name, an attribute, a keyword, an
import, or in C. So an unused method that shares a used name goes undetected, but every reported
name is unused unless a library or an interpreter calls it.
"""

from __future__ import annotations

import ast
import re
from collections import Counter
from typing import TYPE_CHECKING, Final

import pytest

from tests.support.harness.project_files import ROOT
from tests.support.harness.sources import imports_of, name_of, parsed, python_files
from tests.test_house import PRODUCT
from wirebroker import dedup, testing
from wirebroker.delivery import client as delivery_client
from wirebroker.testing import testcontainers

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.usefixtures("parsed_sources")

# Called from outside the product, for the stated reason.
USED_ELSEWHERE: Final[dict[str, str]] = {
    "_missing_": "called by enum for unknown values",
    "connection_made": "called by asyncio",
    **dict.fromkeys(["do_GET", "log_message"], "called by http.server"),
    "connection_lost": "called by asyncio",
    "format_commands": "called by click",
    "capture_signals": "called by uvicorn",
    **dict.fromkeys(
        [
            *("streamReader", "pushFilters", "initialOffset", "latestOffset", "commit"),
            *("getDefaultReadLimit", "prepareForTriggerAvailableNow", "reportLatestOffset"),
        ],
        "called by Spark on a data source",
    ),
    **dict.fromkeys(
        ["is_connected", "is_shared", "open_file_count", "watcher_count", "count_over"],
        "read by tests to check internal state",
    ),
}

# Pairs of classes with the same name, which no module may import together.
HOMONYMS: Final[dict[str, str]] = {
    "Broker": "wirebroker.testing: a server started by tests; elsewhere: the handlers' state",
}

EXPORTING: Final = (testing, testcontainers, dedup, delivery_client)

_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_DUNDER = re.compile(r"__\w+__")


def definitions(tree: ast.Module) -> Iterator[tuple[str, int]]:
    for node in ast.walk(tree):
        if isinstance(node, _DEFINITIONS) and not is_registered(node):
            yield node.name, node.lineno
    for statement in tree.body:
        targets = (
            statement.targets
            if isinstance(statement, ast.Assign)
            else [statement.target]
            if isinstance(statement, ast.AnnAssign)
            else []
        )
        yield from (
            (target.id, target.lineno) for target in targets if isinstance(target, ast.Name)
        )


def is_registered(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) -> bool:
    """Return whether a framework calls it: a handler, a command, a pytest hook."""
    if node.name.startswith("pytest_"):
        return True
    names = {name for decorator in node.decorator_list for name in names_in(decorator)}
    return bool(names & {"handles", "handles_raw", "command", "group", "overload", "fixture"})


def names_in(tree: ast.AST) -> Iterator[str]:
    nodes = list(ast.walk(tree))
    texts = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.Name):
            yield node.id
        elif isinstance(node, ast.Attribute):
            yield node.attr
        elif isinstance(node, ast.keyword) and node.arg is not None:
            yield node.arg
        elif isinstance(node, ast.alias):
            yield node.name.rpartition(".")[2]
        elif isinstance(node, ast.Constant) and id(node) not in texts:
            # Quoted annotations and arguments of getattr, but no docstrings.
            yield from set(re.findall(r"\w+", str(node.value)))


def mentions() -> Counter[str]:
    counts: Counter[str] = Counter()
    for path in (*python_files(*PRODUCT, "compiling"), *ROOT.glob("*.py")):
        tree = parsed(path)
        counts.update(names_in(tree))
        # The assignment of a module's constant is a Name itself.
        counts.subtract(name for name, _ in definitions(tree) if is_constant(tree, name))
    templates = (ROOT / "wirebroker/console/templates").glob("*.html")
    for path in (
        *(ROOT / "codecs").glob("*.[ch]"),
        *(ROOT / "wirebroker").rglob("*.c"),
        *templates,
    ):
        counts.update(re.findall(r"\w+", path.read_text(encoding="utf-8")))
    return counts


def is_constant(tree: ast.Module, name: str) -> bool:
    return any(
        isinstance(target, ast.Name) and target.id == name
        for statement in tree.body
        if isinstance(statement, ast.Assign | ast.AnnAssign)
        for target in (
            statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        )
    )


def test_public_class_names_are_unique():
    """Readers confuse two classes with the same name."""
    locations_by_name: dict[str, list[str]] = {}
    for path in python_files(*PRODUCT):
        for node in parsed(path).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                locations_by_name.setdefault(node.name, []).append(f"{name_of(path)}:{node.lineno}")
    assert {
        name for name, locations in locations_by_name.items() if len(locations) > 1
    } == HOMONYMS.keys()


@pytest.mark.parametrize("name", HOMONYMS)
def test_no_module_imports_two_classes_of_the_same_name(name):
    ending = f".{name}"
    for path in python_files(*PRODUCT):
        imported = {module for module in imports_of(path) if module.endswith(ending)}
        assert len(imported) <= 1, f"{name_of(path)} imports {sorted(imported)}"


def exported_names() -> set[str]:
    """Return the names that other projects use, and the members of the classes among them."""
    public = [getattr(home, name) for home in EXPORTING for name in home.__all__]
    names = {name for home in EXPORTING for name in home.__all__}
    for item in public:
        names |= {base.__name__ for base in getattr(item, "__mro__", ())}
    classes = [
        node
        for folder in ("wirebroker/testing", "wirebroker/dedup", "wirebroker/delivery")
        for path in python_files(folder)
        for node in parsed(path).body
        if isinstance(node, ast.ClassDef) and node.name in names
    ]
    statements = [statement for node in classes for statement in node.body]
    members = {statement.name for statement in statements if isinstance(statement, _DEFINITIONS)}
    return names | members


def test_every_definition_is_used():
    counted = mentions()
    used_by_others = USED_ELSEWHERE.keys() | exported_names()
    unused = [
        f"{name_of(path)}:{line}: {name}"
        for path in python_files(*PRODUCT)
        for name, line in definitions(parsed(path))
        if counted[name] <= 0 and not _DUNDER.fullmatch(name) and name not in used_by_others
    ]
    assert not unused
