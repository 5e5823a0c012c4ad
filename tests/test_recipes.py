"""Run the `python` blocks of the pages about testing as test files."""

from __future__ import annotations

from tests.support.harness.project_files import ROOT
from tests.support.harness.recipes import recipes, run_recipes

PAGES = tuple(ROOT / name for name in ("README.md", "docs/testing.md", "docs/containers.md"))


def test_recipes_work(tmp_path):
    blocks = recipes(*PAGES)
    assert {ROOT / recipe.page for recipe in blocks} == set(PAGES)
    run_recipes(blocks, tmp_path, {})
