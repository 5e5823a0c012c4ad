"""Blocks of the documentation's pages, each run as a file of tests.

The plugin is found as by everybody who has installed wirebroker, with pytest's own settings.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, NamedTuple

from tests.support.harness.project_files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

RECIPE_S = 120


class Recipe(NamedTuple):
    """One fenced block: the page, the line it begins at, its text."""

    page: str
    line: int
    text: str


def recipes(*pages: Path) -> list[Recipe]:
    """Return the blocks of pages that are marked `python`."""
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
    """Run a block as a file of tests, in a folder, with these variables besides."""
    (folder / "test_recipe.py").write_text(recipe.text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-q"]
    ours = ("PYTEST_", "KAFKA_")
    environment = {name: text for name, text in os.environ.items() if not name.startswith(ours)}
    # Whatever engine there is may have no image of ours: compat_tests/containers tries it.
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
    """Return a recipe's place, for the name of its test."""
    return f"{recipe.page}:{recipe.line}"
