"""Check the folders' file counts, README files and import directions."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.sources import GENERATED, imports_of, name_of, python_files
from tests.test_house import PRODUCT, module_of

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.usefixtures("parsed_sources")

MOST_FILES = 25


def modules() -> dict[str, str]:
    return {
        module_of(path): name_of(path.parent)
        for path in python_files(*PRODUCT)
        # The entry points are above everything; a package's lazy exports are not its own.
        if path.name not in {"__init__.py", "__main__.py"}
    }


def imports() -> dict[str, set[str]]:
    folders = modules()
    paths = {module_of(path): path for path in python_files(*PRODUCT)}
    return {
        module: {imported for imported in imports_of(paths[module]) if imported in folders}
        - {module}
        for module in folders
    }


def cycles(edges: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the strongly connected components of more than one node (Tarjan's algorithm)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    components: list[set[str]] = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for target in sorted(edges.get(node, ())):
            if target not in index:
                visit(target)
                low[node] = min(low[node], low[target])
            elif target in stack:
                low[node] = min(low[node], index[target])
        if low[node] == index[node]:
            position = stack.index(node)
            component = set(stack[position:])
            del stack[position:]
            if len(component) > 1:
                components.append(component)

    for node in sorted(edges):
        if node not in index:
            visit(node)
    return components


def test_no_folder_has_too_many_files():
    folders = (*PRODUCT, "tests", "compat_tests", "spark_it", "benchmarks", "compiling")
    files = Counter(path.parent for path in set(python_files(*folders)))
    del files[GENERATED]
    assert {name_of(folder): count for folder, count in files.items() if count > MOST_FILES} == {}


def test_each_folder_has_a_readme():
    rooms = {path.parent for path in python_files(*PRODUCT)} - {GENERATED}
    assert [name_of(room) for room in sorted(rooms) if not (room / "README.md").is_file()] == []


def test_modules_have_no_import_cycles():
    assert cycles(imports()) == []


def room_of(folder: str, depth: int | None = 2) -> str:
    return "/".join(folder.split("/")[:depth])


@pytest.mark.parametrize("depth", [2, None], ids=["rooms", "folders"])
def test_folders_have_no_import_cycles(depth: int | None):
    folders = modules()
    rooms: dict[str, set[str]] = {}
    for module, targets in imports().items():
        room = room_of(folders[module], depth)
        targeted = rooms.setdefault(room, set())
        targeted |= {room_of(folders[target], depth) for target in targets} - {room}
    assert cycles(rooms) == []


def test_network_imports_no_handler():
    folders = modules()
    above = {"wirebroker/api", "wirebroker/replica", "wirebroker/broker"}
    forbidden = {"wirebroker/net": above, "wirebroker/request": above | {"wirebroker/net"}}
    for module, targets in imports().items():
        imported = {room_of(folders[target]) for target in targets}
        assert not imported & forbidden.get(room_of(folders[module]), set()), module
