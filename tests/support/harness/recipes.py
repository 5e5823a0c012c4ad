"""The code blocks of the documentation, run as test files.

They use the plugin of an installed wirebroker and pytest's default settings.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.support.harness.project_files import ROOT

RECIPE_S = 120


class Recipe(NamedTuple):
    """One fenced block: its page, first line and text."""

    page: str
    line: int
    text: str


def recipes(*pages: Path) -> list[Recipe]:
    collected = []
    for page in pages:
        lines = page.read_text(encoding="utf-8").splitlines()
        starts = [number for number, line in enumerate(lines) if line == "```python"]
        for start in starts:
            end = lines.index("```", start)
            text = "\n".join(lines[start + 1 : end]) + "\n"
            collected.append(Recipe(page.relative_to(ROOT).as_posix(), start + 1, text))
    return collected


def run_recipes(blocks: list[Recipe], folder: Path, variables: dict[str, str]) -> None:
    """Run each block as a test file, all in one run with additional environment variables."""
    files = [f"test_{Path(recipe.page).stem}_{recipe.line}.py" for recipe in blocks]
    for file, recipe in zip(files, blocks, strict=True):
        (folder / file).write_text(recipe.text)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--strict-markers", "-rA"]
    excluded_prefixes = ("PYTEST_", "KAFKA_")
    environment = {
        name: text for name, text in os.environ.items() if not name.startswith(excluded_prefixes)
    }
    # The engine here may lack our image; compat_tests/containers tests it.
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
    idle = [file for file in files if f"PASSED {file}::" not in done.stdout]
    assert not idle, "there was nothing to run"


def named(recipe: Recipe) -> str:
    return f"{recipe.page}:{recipe.line}"
