"""Recipes (docs/recipes.md) for libraries that other tests do not need, such as Spark, work."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from spark_it.tools import session, spark_tools
from tests.support.harness.project_files import ROOT
from tests.support.harness.recipes import named, recipes, run_recipes
from tests.support.tools import tools

if TYPE_CHECKING:
    from pathlib import Path

PAGE = ROOT / "docs" / "recipes.md"
OTHER_LIBRARIES = ("faststream[confluent]>=0.7,<0.8", "quixstreams>=3.28,<4")


@pytest.fixture(scope="module")
def libraries() -> dict[str, str]:
    """Return variables with which Python finds the libraries."""
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


@pytest.mark.nightly
@pytest.mark.parametrize("recipe", recipes(PAGE), ids=named)
def test_a_recipe_with_another_library_works(recipe, tmp_path, libraries):
    run_recipes([recipe], tmp_path, libraries)
