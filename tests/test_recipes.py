"""Run each `python` block of the pages about testing as a test file."""

from __future__ import annotations

import pytest

from tests.support.harness.project_files import ROOT
from tests.support.harness.recipes import named, recipes, run_recipe

PAGES = tuple(ROOT / name for name in ("README.md", "docs/testing.md", "docs/containers.md"))


@pytest.mark.parametrize("recipe", recipes(*PAGES), ids=named)
def test_a_recipe_works(recipe, tmp_path):
    run_recipe(recipe, tmp_path, {})


def test_each_page_has_recipes():
    assert {ROOT / recipe.page for recipe in recipes(*PAGES)} == set(PAGES)
