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
from wirebroker.pipelines.source.source_table import SourceWish, packages_for
from wirebroker.pipelines.spark.spark_start import start_spark
settings = dict(each.split("=", 1) for each in sys.argv[1:])
packages = packages_for(SourceWish("b:1", "", {}, ("t",)), settings)
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
    small = session.settings_for(folder) | {"spark.master": "local[1]"}
    small |= {"spark.jars.ivy": str(folder / "ivy"), **settings}
    small.pop("spark.jars")
    given = [f"{name}={value}" for name, value in small.items()]
    done = subprocess.run(
        [sys.executable, "-c", WORDS, *given],
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


def test_lines_are_read_though_none_can_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    """With a full pipe, Spark's process would block."""
    sys.path += [each for each in session.python_folders() if each not in sys.path]
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
        (NOT_THERE, {}, f"Ivy: org.apache.spark#{CONNECTOR};0.0.1: not found. "),
        (NO_PACKAGE, {"JAVA_HOME": "/nowhere"}, "Java 17 or later must be on PATH"),
        (NO_PACKAGE | {"spark.driver.memory": "much"}, {}, "Invalid maximum heap size: -Xmxmuch"),
        (NO_PACKAGE | {"spark.master": "locally"}, {}, "Could not parse Master URL: 'locally'"),
    ],
)
def test_a_start_that_fails_says_why(
    tmp_path: Path, settings: dict[str, str], variables: dict[str, str], told: str
) -> None:
    said = said_by(tmp_path, settings, **variables)
    assert said.startswith("Spark does not start: ")
    assert told in said
    assert ("Java 17" in said) == bool(variables)


def test_the_connector_of_the_pyspark_that_pip_installs_is_in_the_repository(
    tmp_path: Path,
) -> None:
    wanted = f"org.apache.spark:{CONNECTOR}:{spark_tools.SPARK_VERSION}"
    assert said_by(tmp_path, {}) == f"started with {wanted}"
