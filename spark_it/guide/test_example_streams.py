"""The PySpark example passes its tests, run by pytest in its folder."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_it.tools import session
from tests.support.harness.project_files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.nightly, pytest.mark.java]


@pytest.mark.timeout(3_600)  # Spark starts six times
def test_the_example_passes_its_tests(tmp_path: Path) -> None:
    outer = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    settings = session.settings_for(tmp_path)
    spark = {"SPARK_JARS": settings.pop("spark.jars"), "SPARK_CONF_DIR": str(tmp_path)}
    lines = "".join(f"{name} {value}\n" for name, value in settings.items())
    (tmp_path / "spark-defaults.conf").write_text(lines, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=ROOT / "examples" / "streams",
        env={**outer, **session.environment(), **spark, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "3 passed" in done.stdout
