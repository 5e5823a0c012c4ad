"""What a start imports, and what it leaves for later."""

import ast
import importlib
import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from wirebroker.api.modules import API_MODULES
from wirebroker.api.modules import LATE_MODULES as LATE_API_MODULES
from wirebroker.api.registry import REGISTRY
from wirebroker.broker import late_modules
from wirebroker.broker.late_modules import LATE_MODULES, import_late
from wirebroker.codecs.api_keys import ApiKey

# Folders of which a start imports nothing: they serve kinds of groups that most brokers lack.
LATE_FOLDERS = (
    "wirebroker.coordinator.groups.consumer.",
    "wirebroker.coordinator.groups.streams.",
    "wirebroker.coordinator.groups.assignors.",
    "wirebroker.coordinator.groups.topologies.",
    "wirebroker.coordinator.share_partitions.",
)
START = """
import sys
import wirebroker.broker.server
from wirebroker.api.modules import load_handlers
load_handlers()
print("\\n".join(sys.modules))
"""


def test_a_start_imports_no_late_modules():
    names = subprocess.run(
        [sys.executable, "-c", START], check=True, capture_output=True, text=True
    ).stdout.split()
    assert "wirebroker.api.data.produce" in names
    assert [name for name in names if name in LATE_MODULES or name.startswith(LATE_FOLDERS)] == []


@pytest.mark.parametrize("name", LATE_API_MODULES)
def test_late_modules_register_the_declared_keys(name):
    spec = importlib.util.find_spec(f"wirebroker.api.{name}")
    assert spec is not None
    source = Path(str(spec.origin)).parent / f"{name.rpartition('.')[2]}.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    registered = {
        node.attr
        for function in tree.body
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for decorator in function.decorator_list
        for node in ast.walk(decorator)
        if isinstance(node, ast.Attribute) and getattr(node.value, "id", "") == "ApiKey"
    }
    assert registered == {key.name for key in LATE_API_MODULES[name]}


@pytest.mark.parametrize("name", LATE_MODULES)
def test_late_modules_can_be_imported(name):
    assert importlib.import_module(name)


def test_no_module_is_both():
    assert not set(API_MODULES) & set(LATE_API_MODULES)


def test_late_handlers_are_loaded_when_they_are_needed():
    assert REGISTRY.handler(ApiKey.SHARE_FETCH).key is ApiKey.SHARE_FETCH


async def test_a_module_that_fails_does_not_prevent_the_next_one(tmp_path, monkeypatch, caplog):
    (tmp_path / "failing_late_module.py").write_text("raise RuntimeError('a defect')")
    (tmp_path / "good_late_module.py").write_text("")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(late_modules, "_DELAY_S", 0.0)
    await import_late(["failing_late_module", "good_late_module"])
    assert sys.modules.pop("good_late_module")
    assert "cannot import failing_late_module" in caplog.text
