"""What the pages say about testing is run: each block marked `python`, as a file of tests.

The plugin is found as by everybody who has installed wirebroker, with pytest's own settings.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import NamedTuple

import pytest

from tests.project_files import ROOT

PAGES = tuple(ROOT / name for name in ("README.md", "docs/testing.md", "docs/containers.md"))
RECIPE_S = 120


class Recipe(NamedTuple):
    """One fenced block: the page, the line it begins at, its text."""

    page: str
    line: int
    text: str


def recipes() -> list[Recipe]:
    found = []
    for page in PAGES:
        lines = page.read_text(encoding="utf-8").splitlines()
        starts = [number for number, line in enumerate(lines) if line == "```python"]
        for start in starts:
            end = lines.index("```", start)
            text = "\n".join(lines[start + 1 : end]) + "\n"
            found.append(Recipe(page.relative_to(ROOT).as_posix(), start + 1, text))
    return found


@pytest.mark.parametrize("recipe", recipes(), ids=lambda recipe: f"{recipe.page}:{recipe.line}")
def test_a_recipe_works(recipe, tmp_path):
    (tmp_path / "test_recipe.py").write_text(recipe.text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q"]
    ours = ("PYTEST_", "KAFKA_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    done = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=RECIPE_S,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout, "there was nothing to run"


def test_each_page_has_recipes():
    assert {ROOT / recipe.page for recipe in recipes()} == set(PAGES)
