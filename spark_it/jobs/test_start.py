"""If Spark does not start, the error gives the reason: Ivy, a missing Java, a wrong setting."""

from __future__ import annotations

import errno
import io
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_it.tools import session, spark_tools

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = [pytest.mark.long, pytest.mark.java]

WORDS = """
import sys
from wirebroker.pipelines.job.errors import PipelineError
from wirebroker.pipelines.source.source_table import SourceOptions, packages_for
from wirebroker.pipelines.spark.spark_start import start_spark
settings = dict(each.split("=", 1) for each in sys.argv[1:])
packages = packages_for(SourceOptions("b:1", "", {}, ("t",)), settings)
try:
    start_spark("none", packages | settings).stop()
except PipelineError as error:
    print(error)
else:
    print(f"started with {packages['spark.jars.packages']}")
"""
CONNECTOR = "spark-sql-kafka-0-10_2.13"
NOT_THERE = {"spark.jars.packages": f"org.apache.spark:{CONNECTOR}:0.0.1"}
NO_PACKAGE = {"spark.jars.packages": ""}


def said_by(folder: Path, settings: dict[str, str], **variables: str) -> str:
    all_settings = session.settings_for(folder) | {"spark.master": "local[1]"}
    all_settings |= {"spark.jars.ivy": str(folder / "ivy"), **settings}
    all_settings.pop("spark.jars")
    assignments = [f"{name}={value}" for name, value in all_settings.items()]
    done = subprocess.run(
        [sys.executable, "-c", WORDS, *assignments],
        env={**os.environ, **session.environment(), **variables},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


class _FullDisk(io.StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, "no space")


def test_error_lines_are_read_when_stderr_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With a full pipe, Spark's process would block."""
    sys.path += [folder for folder in session.python_folders() if folder not in sys.path]
    from wirebroker.pipelines.spark.java_start import _ErrorLines

    monkeypatch.setattr(sys, "stderr", _FullDisk())
    lines = _ErrorLines()
    os.write(lines.writer, b"one\n" * 20_000 + b"last\n")
    lines.close_writer()
    lines.await_end()
    assert lines.last[-1] == "last\n"


@pytest.mark.parametrize(
    ("settings", "variables", "told"),
    [
        pytest.param(
            NOT_THERE,
            {},
            f"Ivy: org.apache.spark#{CONNECTOR};0.0.1: not found. ",
            marks=pytest.mark.nightly,
        ),
        (NO_PACKAGE, {"JAVA_HOME": "/nowhere"}, "Java 17 or later must be on PATH"),
        (NO_PACKAGE | {"spark.driver.memory": "much"}, {}, "Invalid maximum heap size: -Xmxmuch"),
        pytest.param(
            NO_PACKAGE | {"spark.master": "locally"},
            {},
            "Could not parse Master URL: 'locally'",
            marks=pytest.mark.nightly,
        ),
    ],
)
def test_failed_start_reports_reason(
    tmp_path: Path, settings: dict[str, str], variables: dict[str, str], told: str
) -> None:
    output = said_by(tmp_path, settings, **variables)
    assert output.startswith("Spark does not start: ")
    assert told in output
    assert ("Java 17" in output) == bool(variables)


@pytest.mark.nightly
def test_connector_of_installed_pyspark_is_in_maven_repository(
    tmp_path: Path,
) -> None:
    connector = f"org.apache.spark:{CONNECTOR}:{spark_tools.SPARK_VERSION}"
    assert said_by(tmp_path, {}) == f"started with {connector}"
