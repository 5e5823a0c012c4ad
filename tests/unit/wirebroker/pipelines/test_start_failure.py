"""Causes of failed Spark starts, from the output of Ivy, Java and Spark's scripts."""

import pytest

from wirebroker.pipelines.spark.start_failure import reason_in

CONNECTOR = "org.apache.spark#spark-sql-kafka-0-10_2.13;4.2.1"
NOT_FOUND = f"""\
:::: WARNINGS
\tHost repos.spark-packages.org not found. url=https://spark-packages.example/x.pom
\t\tmodule not found: {CONNECTOR}
\t==== central: tried
\t\t:: {CONNECTOR}: not found
Exception in thread "main" java.lang.RuntimeException: [unresolved dependency: {CONNECTOR}]
"""


@pytest.mark.parametrize(
    ("written", "told"),
    [
        (NOT_FOUND, f"Ivy: {CONNECTOR}: not found. Spark downloads "),
        (
            "\tHost repo.example not found. url=https://repo.example/x.pom\n" + NOT_FOUND,
            "Ivy: Host repo.example not found. url=https://repo.example/x.pom; "
            f"{CONNECTOR}: not found. ",
        ),
        (
            "\tServer access Error: Connection refused url=https://repo.example/x.pom\n",
            "Ivy: Server access Error: Connection refused url=https://repo.example/x.pom. ",
        ),
        (
            "\t\t:: org.x#y;1!y.jar: download failed\n",
            "Ivy: org.x#y;1!y.jar: download failed. ",
        ),
        ("JAVA_HOME is not set\n", "Java 17 or later must be on PATH, or in JAVA_HOME: JAVA_HOME "),
        (
            "bin/spark-class: line 97: /nowhere/bin/java: No such file or directory\n",
            "Java 17 or later must be on PATH, or in JAVA_HOME: bin/spark-class: ",
        ),
        (
            "Error: LinkageError occurred while loading main class\n"
            "\tjava.lang.UnsupportedClassVersionError: class file version 61.0\n",
            "Java 17 or later must be on PATH, or in JAVA_HOME: java.lang.Unsupported",
        ),
        ("Invalid maximum heap size: -Xmxmuch\nError: Could not create it.\n", "Invalid maximum"),
        ("one\nthe last\n\n", "one; the last"),
        ("", "Java 17 or later must be on PATH, or in JAVA_HOME: exited"),
    ],
)
def test_the_reason_is_reported(written: str, told: str) -> None:
    assert reason_in(written.splitlines(keepends=True), OSError("exited")).startswith(told)
