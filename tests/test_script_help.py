"""`--help` of every script prints its usage, has no effect and exits with 0."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.project_files import ROOT, project_files

if TYPE_CHECKING:
    from pathlib import Path

FOLDERS = ("compat_tests", "benchmarks", "tests", "compiling", ".ci", "spark_it")


def is_script(path: Path) -> bool:
    text = path.read_bytes()
    if path.suffix != ".py":
        return path.suffix in {"", ".sh"} and text.startswith(b"#!")
    if b"sys.argv" not in text and b"__main__" not in text:
        return False
    return any(is_run(statement) for statement in ast.parse(text).body)


def is_run(statement: ast.stmt) -> bool:
    """Return whether a statement runs only in a script, or reads a script's arguments."""
    if isinstance(statement, ast.FunctionDef | ast.ClassDef):
        return False
    if isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test):
        return True
    attributes = (node for node in ast.walk(statement) if isinstance(node, ast.Attribute))
    return any(ast.unparse(attribute) == "sys.argv" for attribute in attributes)


def scripts() -> list[Path]:
    names = {path.relative_to(ROOT): path for path in project_files() if not path.is_symlink()}
    return [
        path
        for name, path in names.items()
        # Jobs are part of the package and need PySpark.
        if name.parts[0] in FOLDERS and name.parts[:2] != ("spark_it", "pipelines")
        if is_script(path)
    ]


def command_of(path: Path) -> list[str]:
    if path.suffix != ".py":
        return ["bash", str(path)]
    parts = path.relative_to(ROOT).with_suffix("").parts
    return [sys.executable, "-m", ".".join(parts[: -1 if parts[-1] == "__main__" else None])]


def test_each_folder_has_scripts():
    assert {path.relative_to(ROOT).parts[0] for path in scripts()} == set(FOLDERS)


@pytest.mark.parametrize("path", scripts(), ids=lambda path: path.relative_to(ROOT).as_posix())
def test_help_prints_the_usage_and_does_nothing(path: Path, tmp_path: Path) -> None:
    done = subprocess.run(
        [*command_of(path), "--help"],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.lower().startswith("usage: ")
    assert not [*tmp_path.iterdir()]
