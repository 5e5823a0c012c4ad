"""Check the project's rules: imports between layers, wrapped libraries, links, packages and sizes.

Imports go codecs -> storage -> coordinator -> wirebroker (docs/design.md): a layer imports
itself, the layers before it, and the leaves. Checks of ruff, mypy and pyright are not repeated.
"""

from __future__ import annotations

import ast
import re
import tomllib
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.project_files import ROOT, project_files
from tests.support.harness.sources import (
    GENERATED,
    imports_of,
    name_of,
    nodes_in,
    python_files,
)

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("parsed_sources")

LAYERS = ("codecs", "storage", "coordinator")
# Spark packages, linked into the package like the layers; no higher layer imports them.
LINKED = {"pipelines": "spark_it/pipelines", "segments": "spark_it/segments"}
PRODUCT = (*LAYERS, "wirebroker", *LINKED.values())
LEAVES = re.compile(
    r"wirebroker(\.config|\.base(\.(cleaner_figures|clock|_histogram|integer_histogram|log_bound"
    r"|metric_field|metrics|request_meters|text))?)?"
)

MOST_LINES = 600
MOST_FUNCTION_LINES = 70
# path or path::function -> reason for its length.
LONG_BY_NATURE: dict[str, str] = {
    "codecs/records/whole_records.py::walk_whole": "a turn per record; calls would double it",
}

# library -> files that may import it.
DOORS = {
    "crc32c": {"codecs/records/checksum.py"},
    "lz4": {"codecs/records/compression.py"},
    "zstandard": {"codecs/records/zstd_frames.py"},
    "cramjam": {"codecs/records/snappy_blocks.py"},
    "zlib": {"codecs/records/compression.py", "spark_it/pipelines/ingest/file_lines.py"},
    # Also a package: each verb defines its own flags, and `serve` stays small.
    "click": {
        "wirebroker/cli/",
        "wirebroker/cli/kafka/",
        "wirebroker/cli/kafka/formatters/",
        "wirebroker/cli/kafka/groups/",
        "wirebroker/cli/kafka/operators/",
        "wirebroker/cli/kafka/plumbing/",
        "wirebroker/cli/plumbing/",
        "wirebroker/cli/services/",
        "wirebroker/cli/verbs/",
    },
    "xxhash": {"coordinator/groups/metadata_hash.py"},
    "re2": {"coordinator/patterns.py"},
    "h11": {"wirebroker/http/conversation.py"},
    "argon2": {"wirebroker/console/login/password_hashes.py"},
    "starlette": {
        "wirebroker/console/api/",
        "wirebroker/console/pages/",
        "wirebroker/console/web/",
    },
    "uvicorn": {
        "wirebroker/console/web/http_connection.py",
        "wirebroker/console/web/server.py",
    },
    "jinja2": {"wirebroker/console/view/rendering.py"},
    "markupsafe": {"wirebroker/console/view/plots.py"},
    "jwt": {"wirebroker/security/tokens/tokens.py"},
    "gssapi": {"wirebroker/security/sasl/kerberos.py"},
    "testcontainers": {"wirebroker/testing/hosts/engine.py"},
    "cryptography": {
        "wirebroker/security/tls/certificates.py",
        "wirebroker/security/tls/pkcs12.py",
    },
    "jks": {"wirebroker/security/tls/jks_store.py"},
    "kafka": set[str](),  # used when the package is built
    "kio": set[str](),
    # Also a package: the code that Spark calls, and its rows.
    "pyspark": {
        "spark_it/pipelines/archive/",
        "spark_it/pipelines/commands/",
        "spark_it/pipelines/delivery/",
        "spark_it/pipelines/ingest/",
        "spark_it/pipelines/quality/",
        "spark_it/pipelines/replay/",
        "spark_it/pipelines/run/",
        "spark_it/pipelines/source/",
        "spark_it/pipelines/spark/",
        "spark_it/pipelines/windows/",
        "spark_it/segments/",
    },
    # PySpark's bridge to Java, whose errors reach us.
    "py4j": {"spark_it/pipelines/spark/java_start.py"},
    "pyarrow": {
        "spark_it/pipelines/delivery/",
        "spark_it/pipelines/ingest/",
        "spark_it/pipelines/replay/",
        "spark_it/pipelines/rows/",
        "spark_it/pipelines/windows/",
        "spark_it/segments/",
    },
    # Transactional producers: in Spark tasks, of the delivery service, of `dlq redrive`.
    "confluent_kafka": {
        "wirebroker/delivery/letters/",
        "wirebroker/delivery/service/",
        "spark_it/pipelines/archive/",
        "spark_it/pipelines/commands/",
        "spark_it/pipelines/delivery/",
        "spark_it/pipelines/quality/",
        "spark_it/pipelines/run/",
    },
    "fastavro": {"spark_it/pipelines/ingest/file_rows.py"},
}
OS_MODULES = {"os", "shutil", "fcntl", "mmap", "tempfile", "io"}
TIME_MODULES = {"time", "datetime", "sched"}
NETWORK_MODULES = {"socket", "ssl", "select", "selectors", "asyncio", "threading", "subprocess"}
# layer -> modules that it must not import: codecs use no file, clock or socket, storage opens files
# only through files.py, coordinators use none of them.
WITHOUT = {
    "codecs": OS_MODULES | TIME_MODULES | NETWORK_MODULES | {"pathlib"},
    "storage": OS_MODULES | TIME_MODULES | NETWORK_MODULES | {"pathlib"},
    "coordinator": OS_MODULES | TIME_MODULES | NETWORK_MODULES | {"pathlib"},
}
# Clocks that only measure, and the tests that do not assert an upper bound with them.
STOPWATCHES = re.compile(r"\b(perf_counter|thread_time|process_time)(_ns)?\b")
USES_STOPWATCH = {
    "tests/support/harness/budget.py": "limits the duration of randomized tests",
    "tests/unit/wirebroker/net/test_loop_watch.py": "blocks the loop, for the watch to see",
    "tests/unit/wirebroker/net/sockets/test_poller.py": "replaces the watch's clock",
}
# `assert now - began < …` fails on a busy machine. A lower bound (`>=`) holds on every machine.
BOUNDED_TIME = re.compile(r"assert [^\n]*\b(time|monotonic)\(\) - \w+(?![^\n]*>=?)[^\n]*<")

# A broker drops the frames of a stored error, which would form a reference cycle (gc_tuning.py).
STORES_FRAMES = {
    "wirebroker/base/abandonable_threads.py": "the caller's future; then dropped",
    "wirebroker/quotas/client_quotas.py": "dropped after it is thrown again",
    "wirebroker/testing/cluster/cluster.py": "runs only in test processes",
}

MAY_IMPORT = {
    "storage/files.py": OS_MODULES,  # the only interface to the file system
    "storage/paged_file.py": OS_MODULES,  # its data files: names and pages
    "storage/small_files.py": OS_MODULES,  # its small files
    "storage/system_calls.py": OS_MODULES | {"threading"},  # its system calls
    "storage/descriptors.py": OS_MODULES,  # its file descriptors
    "storage/listing.py": OS_MODULES,  # its directory listings
    "storage/file_cache.py": {"threading"},  # threads sync and prefetch files
    "codecs/primitives.py": {"os"},  # os.urandom, for ids
}


def layer_of(module: str) -> str:
    parts = module.split(".")
    if len(parts) > 1 and parts[1] in LAYERS:
        return parts[1]
    # The name after the module (`from wirebroker.config import Config`) does not change the layer.
    depth = 3 if parts[1:2] == ["base"] else 2
    return "leaf" if LEAVES.fullmatch(".".join(parts[:depth])) else "wirebroker"


def module_of(path: Path) -> str:
    dotted = name_of(path).removesuffix(".py").replace("/", ".").removesuffix(".__init__")
    dotted = dotted.removeprefix("spark_it.")
    return dotted if dotted.startswith("wirebroker") else f"wirebroker.{dotted}"


def test_imports_go_from_codecs_to_storage_to_coordinator_to_wirebroker():
    order = ["leaf", *PRODUCT]
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in python_files(*PRODUCT)
        for module in imports_of(path)
        if module.split(".")[0] == "wirebroker"
        and module != "wirebroker"
        # `from wirebroker import config` yields the package besides the leaf.
        and order.index(layer_of(module)) > order.index(layer_of(module_of(path)))
    ]
    assert not wrong


def test_tests_need_neither_compat_tests_nor_spark_it():
    """Shared code belongs in tests/support."""
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in [*python_files("tests"), ROOT / "conftest.py"]
        for module in imports_of(path)
        if module.split(".")[0] in {"compat_tests", "spark_it"}
    ]
    assert not wrong


@pytest.mark.parametrize("library", DOORS)
def test_each_library_is_imported_only_where_allowed(library):
    users = {
        name_of(path)
        for path in python_files(*PRODUCT)
        if any(module.split(".")[0] == library for module in imports_of(path))
    }
    rooms = {door for door in DOORS[library] if door.endswith("/")}
    assert {user for user in users if user.rpartition("/")[0] + "/" not in rooms} <= DOORS[library]


def test_json_has_one_reader():
    """Other readers raise RecursionError for deeply nested documents."""
    users = {
        name_of(path)
        for path in python_files(*PRODUCT)
        if re.search(r"\bjson\.loads?\(", path.read_text(encoding="utf-8"))
    }
    assert users == {"codecs/json_text.py"}


def test_no_package_is_searched_at_run_time():
    users = {
        name_of(path)
        for path in python_files(*PRODUCT)
        if "importlib.util.find_spec" in imports_of(path)
    }
    assert not users


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_import_no_files_clocks_or_sockets(layer):
    wrong = [
        f"{name_of(path)} imports {module}"
        for path in python_files(layer)
        for module in imports_of(path)
        if module.split(".")[0] in WITHOUT[layer] - MAY_IMPORT.get(name_of(path), set())
    ]
    assert not wrong


@pytest.mark.parametrize("layer", LAYERS)
def test_layers_have_no_async_code(layer):
    waiting = (ast.AsyncFunctionDef, ast.Await, ast.AsyncFor, ast.AsyncWith)
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files(layer)
        for node in nodes_in(path, *waiting)
    ]
    assert not wrong


def test_no_layer_calls_open():
    wrong = [
        f"{name_of(path)}:{node.lineno}"
        for path in python_files(*LAYERS)
        for node in nodes_in(path, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "open"
    ]
    assert not wrong


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_linked_into_the_package_and_has_no_init(layer):
    link = ROOT / "wirebroker" / layer
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{layer}"
    assert not list((ROOT / layer).rglob("__init__.py"))


@pytest.mark.parametrize("name", LINKED)
def test_spark_packages_are_linked_and_imported_by_no_other_code(name):
    link = ROOT / "wirebroker" / name
    assert link.is_symlink()
    assert str(link.readlink()) == f"../{LINKED[name]}"
    users = {
        name_of(path)
        for path in python_files(*LAYERS, "wirebroker")
        if any(module.startswith(f"wirebroker.{name}") for module in imports_of(path))
    }
    assert not users


@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_has_a_readme(layer):
    assert (ROOT / layer / "README.md").is_file()


def packages_in_the_tree() -> set[str]:
    folders = {path.parent for path in python_files(*PRODUCT)} | {GENERATED}
    return {module_of(folder / "__init__.py") for folder in folders}


def test_package_list_matches_the_tree():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    setuptools = project["tool"]["setuptools"]
    assert set(setuptools["packages"]) == packages_in_the_tree()
    linked = {layer: layer for layer in LAYERS} | LINKED
    assert setuptools["package-dir"] == {
        f"wirebroker.{name}": path for name, path in linked.items()
    }


def test_no_file_exceeds_the_maximum_length():
    folders = (*PRODUCT, "tests", "compat_tests", "spark_it", "benchmarks")
    long = {
        name_of(path): lines
        for path in python_files(*folders)
        if (lines := path.read_text(encoding="utf-8").count("\n")) > MOST_LINES
        and name_of(path) not in LONG_BY_NATURE
    }
    assert not long


def test_no_function_exceeds_the_maximum_length():
    long = {
        location: length
        for path in python_files(*PRODUCT, "compat_tests", "spark_it", "benchmarks")
        for node in nodes_in(path, ast.FunctionDef, ast.AsyncFunctionDef)
        if (length := (node.end_lineno or 0) - node.lineno + 1) > MOST_FUNCTION_LINES
        and (location := f"{name_of(path)}::{node.name}") not in LONG_BY_NATURE
    }
    assert not long


def test_files_with_a_length_exception_exist():
    paths = {name.partition("::")[0] for name in LONG_BY_NATURE}
    assert all((ROOT / path).is_file() for path in paths)


# Concatenated so that this file does not match itself; a POM's XML namespace is not a registry.
MACHINE = re.compile(
    r"(?:^|[^a-z.])/(?:work|farm|root)/"
    r"|https?://(?!maven\.apache\.org/POM/)[a-z0-9.-]*(?:pypi|python"
    + "hosted|maven|npmjs|golang|crates)[a-z0-9.-]*",
    re.MULTILINE,
)


def test_no_file_contains_paths_or_registries_of_one_machine():
    wrong = []
    for path in project_files():
        if path.is_symlink():
            continue
        try:
            text = path.read_text(encoding="utf-8")
        except UnicodeDecodeError:
            continue  # recorded bytes
        wrong += [f"{name_of(path)}: {match.group()}" for match in MACHINE.finditer(text)]
    assert not wrong


def stores_error(handler: ast.ExceptHandler) -> bool:
    for node in ast.walk(handler):
        stored_values: list[ast.expr] = []
        if isinstance(node, ast.Assign | ast.AnnAssign | ast.Return) and node.value is not None:
            stored_values = [node.value]
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            stored_values = (
                node.args if node.func.attr in {"append", "add", "set_exception"} else []
            )
        for value in stored_values:
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else [value]
            if any(isinstance(part, ast.Name) and part.id == handler.name for part in parts):
                return True
    return False


def test_a_caught_error_is_stored_without_its_frames():
    stored = {
        f"{name_of(path)}:{node.lineno}": name_of(path)
        for path in python_files(*LAYERS, "wirebroker")
        for node in nodes_in(path, ast.ExceptHandler)
        if node.name and stores_error(node)
    }
    assert [line for line, name in stored.items() if name not in STORES_FRAMES] == []
    assert set(stored.values()) == set(STORES_FRAMES)


def test_no_test_fails_because_a_machine_is_slow():
    """Tests count work (tests/support/harness/turn_work.py); benchmarks/ measures time."""
    violations: list[str] = []
    for path in python_files("tests", "compat_tests", "spark_it"):
        text = path.read_text(encoding="utf-8")
        name = name_of(path)
        # A simulation has its own time.
        if name == "tests/test_house.py" or name.startswith("tests/simulation/"):
            continue
        if STOPWATCHES.search(text) and name not in USES_STOPWATCH:
            violations.append(f"{name}: a stopwatch")
        violations += [f"{name}: {match.group()}" for match in BOUNDED_TIME.finditer(text)]
    assert violations == []
    for name in USES_STOPWATCH:
        assert STOPWATCHES.search((ROOT / name).read_text(encoding="utf-8")), name


def needs_reason(node: ast.ExceptHandler | ast.Call) -> bool:
    """Return whether a node catches every exception, or sleeps."""
    if isinstance(node, ast.ExceptHandler):
        return isinstance(node.type, ast.Name) and node.type.id == "Exception"
    function = node.func
    return (
        isinstance(function, ast.Attribute)
        and function.attr == "sleep"
        and isinstance(function.value, ast.Name)
        and function.value.id == "time"
    )


def test_broad_handlers_and_sleeps_have_their_reason_beside_them():
    folders = (*PRODUCT, "tests", "compat_tests", "spark_it", "benchmarks", "compiling")
    wrong: list[str] = []
    for path in python_files(*folders):
        lines = path.read_text(encoding="utf-8").splitlines()
        wrong += [
            f"{name_of(path)}:{node.lineno}"
            for node in nodes_in(path, ast.ExceptHandler, ast.Call)
            if needs_reason(node) and "#" not in lines[node.lineno - 1]
        ]
    assert wrong == []
