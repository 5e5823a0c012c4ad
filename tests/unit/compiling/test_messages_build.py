"""The build of the modules in codecs/generated."""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from compiling.messages import build, definitions
from compiling.messages.modules import module_name, module_source
from tests.support.harness.project_files import copy_of_the_project

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(build, "MODULES", tmp_path / "generated")
    return tmp_path / "generated"


def test_modules_on_disk_equal_generated_modules() -> None:
    made = {path.name: path.read_text(encoding="utf-8") for path in build.MODULES.glob("*.py")}
    assert made.pop("made_from.py")
    expected = {f"{module_name(s)}.py": module_source(s) for s in definitions.all_schemas()}
    assert made == expected, f"codecs/generated is stale: {build.COMMAND}"


@pytest.mark.skipif(
    os.environ.get("WIREBROKER_TESTS_EXPECT") == "compiled", reason="a copy is no checkout"
)
def test_run_without_generated_modules_names_the_command(tmp_path: Path) -> None:
    copy = copy_of_the_project(tmp_path / "copy")
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, "tests/test_docs.py"], cwd=copy, capture_output=True, text=True, check=False
    )
    assert done.returncode == 4
    assert "python -m compiling.messages" in done.stderr


def test_current_modules_are_not_rebuilt(folder: Path) -> None:
    assert build.requirements() == [definitions.KAFKA_PYTHON]
    build.make_modules()
    assert build.requirements() == []
    note = folder / "made_from.py"
    before = note.stat().st_mtime_ns
    build.make_modules()
    assert note.stat().st_mtime_ns == before


def test_stale_modules_are_rebuilt_from_scratch(folder: Path) -> None:
    folder.mkdir()
    (folder / "made_from.py").write_text('DIGEST = "another"\n', encoding="utf-8")
    (folder / "update_metadata_request.py").touch()
    assert not build.are_current()
    build.make_modules()
    assert build.are_current()
    assert not (folder / "update_metadata_request.py").exists()
    assert (folder / "create_topics_request.py").exists()


def test_an_interrupted_build_is_not_current(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> str:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(build, "are_current", lambda: False)
        patch.setattr(build, "_note", interrupted)
        with pytest.raises(KeyboardInterrupt):
            build.make_modules()
    assert (folder / "create_topics_request.py").exists()
    assert not build.are_current()


def test_every_generated_module_names_its_generator(folder: Path) -> None:
    build.make_modules()
    for path in folder.glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "made" in (ast.get_docstring(ast.parse(text)) or ""), path.name


@pytest.fixture
def their_schema(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the file of a copy of kafka-python's definitions, the only one on sys.path."""
    resources = definitions._resources()
    copy = tmp_path / "site" / definitions._RESOURCES
    shutil.copytree(resources, copy)
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site")])
    definitions.kafka_python_schema.cache_clear()
    return copy / "EndTxnRequest.json"


def test_a_definition_with_other_comments_is_the_same(their_schema: Path) -> None:
    text = their_schema.read_text(encoding="utf-8")
    their_schema.write_text("// Another licence.\n" + text, encoding="utf-8")
    assert definitions.kafka_python_schema("EndTxnRequest").number == 26


def test_a_definition_with_another_meaning_stops_the_build(their_schema: Path) -> None:
    text = their_schema.read_text(encoding="utf-8")
    assert '"int64"' in text
    their_schema.write_text(text.replace('"int64"', '"int32"'), encoding="utf-8")
    with pytest.raises(definitions.DefinitionsError, match="EndTxnRequest"):
        definitions.kafka_python_schema("EndTxnRequest")


def test_a_definition_that_is_missing_stops_the_build(their_schema: Path) -> None:
    their_schema.unlink()
    with pytest.raises(definitions.DefinitionsError, match="kafka-python>=3"):
        definitions.kafka_python_schema("EndTxnRequest")


def test_without_kafka_python_the_build_says_what_it_needs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "kafka").mkdir()  # an empty folder of that name does not count
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    with pytest.raises(definitions.DefinitionsError, match="kafka-python>=3"):
        definitions._resources()
