"""Installation of Spark's own test suites for its connector, to run against a running broker.

The classes in src/ precede those of Spark's tests jar: KafkaTestUtils replaces the class that
starts a broker; TokenStandInTest is used only without Spark's token module.
"""

from __future__ import annotations

import re
import zipfile
from functools import cache
from typing import TYPE_CHECKING

from spark_it.tools import spark_tools
from spark_it.tools.jars import Jar
from spark_it.tools.spark_tools import SCALA_VERSION, SOURCES, SPARK, SPARK_VERSION
from tests.support.tools import tools

if TYPE_CHECKING:
    from pathlib import Path

_CONNECTOR_TESTS = Jar(
    SPARK, f"spark-sql-kafka-0-10_{SCALA_VERSION}", SPARK_VERSION, "tests", alone=True
)
_JARS = (
    _CONNECTOR_TESTS,
    *(
        Jar(SPARK, f"spark-{name}_{SCALA_VERSION}", SPARK_VERSION, "tests", alone=True)
        for name in ("sql", "catalyst", "core", "tags")
    ),
    Jar("org.scalatest", f"scalatest_{SCALA_VERSION}", "3.2.19"),
    Jar("org.scalatestplus", f"mockito-5-18_{SCALA_VERSION}", "3.2.19.0"),
    Jar("org.scalatestplus", f"scalacheck-1-18_{SCALA_VERSION}", "3.2.19.0"),
    Jar("org.mockito", "mockito-core", "5.23.0"),
    Jar("org.jmock", "jmock-junit5", "2.13.1"),
)
_TOKEN_TESTS = (Jar(SPARK, spark_tools.TOKEN_MODULE, SPARK_VERSION, "tests", alone=True),)
# PySpark has its own versions of these.
_NOT_BESIDE_PYSPARK = re.compile(r"(scala-library|scala-reflect|scala-xml_2\.13|jsr305)-.*")


@cache
def suites_folder() -> Path:
    """Return the folder with the suites: `tests/` (unpacked), `ours/` (compiled), `jars/`."""
    return tools._installed(f"spark-suites-{SPARK_VERSION}", _install)


def class_path() -> list[Path]:
    folder = suites_folder()
    return [
        folder / "ours",
        folder / "tests",
        *spark_tools.connector_jars(),
        *sorted(spark_tools.spark_jars().glob("*.jar")),
        *sorted((folder / "jars").glob("*.jar")),
    ]


def _install(folder: Path) -> None:
    jars = folder / "jars"
    jars.mkdir()
    spark_tools.fetch_jars(_JARS, jars)
    for jar in jars.glob("*.jar"):
        if _NOT_BESIDE_PYSPARK.fullmatch(jar.name):
            jar.unlink()
    # Unpacked, because some suites open their data as files.
    tests = jars / _CONNECTOR_TESTS.file_name
    with zipfile.ZipFile(tests) as archive:
        archive.extractall(folder / "tests")
    tests.unlink()
    sources = [SOURCES / "KafkaTestUtils.scala"]
    if not spark_tools.fetch_optional_jars(_TOKEN_TESTS, jars):
        sources.append(SOURCES / "TokenStandInTest.scala")
    compiled = folder / "ours"
    compiled.mkdir()
    libraries = [folder / "tests", *spark_tools.connector_jars(), *sorted(jars.glob("*.jar"))]
    spark_tools.compile_scala(sources, compiled, libraries)
