"""What the pages say about testing is run: each block marked `python`, as a file of tests.

The plugin is found as by everybody who has installed wirebroker, with pytest's own settings. Blocks
for libraries that other tests do without are run with --long, by which those are installed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

import pytest

from spark_it import session, spark_tools
from tests.project_files import ROOT
from tests.support import tools

if TYPE_CHECKING:
    from pathlib import Path

PAGES = tuple(ROOT / name for name in ("README.md", "docs/testing.md", "docs/containers.md"))
OTHERS = ROOT / "docs" / "recipes.md"
OTHER_LIBRARIES = ("faststream[confluent]>=0.7,<0.8", "quixstreams>=3.28,<4")
RECIPE_S = 120


class Recipe(NamedTuple):
    """One fenced block: the page, the line it begins at, its text."""

    page: str
    line: int
    text: str


def recipes(*pages: Path) -> list[Recipe]:
    found = []
    for page in pages:
        lines = page.read_text(encoding="utf-8").splitlines()
        starts = [number for number, line in enumerate(lines) if line == "```python"]
        for start in starts:
            end = lines.index("```", start)
            text = "\n".join(lines[start + 1 : end]) + "\n"
            found.append(Recipe(page.relative_to(ROOT).as_posix(), start + 1, text))
    return found


def run_recipe(recipe: Recipe, folder: Path, variables: dict[str, str]) -> None:
    (folder / "test_recipe.py").write_text(recipe.text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q"]
    ours = ("PYTEST_", "KAFKA_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    # Whatever engine there is has no image of ours, or an old one: compat_tests/containers tries it.
    environment["DOCKER_HOST"] = "unix:///nowhere/docker.sock"
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=RECIPE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout, "there was nothing to run"


def named(recipe: Recipe) -> str:
    return f"{recipe.page}:{recipe.line}"


@pytest.mark.parametrize("recipe", recipes(*PAGES), ids=named)
def test_a_recipe_works(recipe, tmp_path):
    run_recipe(recipe, tmp_path, {})


def test_each_page_has_recipes():
    assert {ROOT / recipe.page for recipe in recipes(*PAGES)} == set(PAGES)


@pytest.fixture(scope="module")
def libraries() -> dict[str, str]:
    """Variables by which Python finds the other libraries, Spark among them."""
    installed = tools._installed("recipes", install_other_libraries)
    jars = ",".join(map(str, spark_tools.connector_jars()))
    spark = session.environment()
    return spark | {
        "PYTHONPATH": os.pathsep.join((str(installed), spark["PYTHONPATH"])),
        "PYSPARK_SUBMIT_ARGS": f"--jars {jars} pyspark-shell",
    }


def install_other_libraries(folder: Path) -> None:
    for library in OTHER_LIBRARIES:
        tools._pip_install(library, folder)


@pytest.mark.long
@pytest.mark.parametrize("recipe", recipes(OTHERS), ids=named)
def test_a_recipe_with_another_library_works(recipe, tmp_path, libraries):
    run_recipe(recipe, tmp_path, libraries)
