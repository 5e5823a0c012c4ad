"""A small local Spark session with Spark's Kafka connector."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from spark_it.tools import spark_tools

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

HOST = "127.0.0.1"


def start(directory: Path, settings: Mapping[str, str] | None = None) -> SparkSession:
    """Start Spark in its own Java process; `settings` override those of `settings_for`."""
    for folder in python_folders():
        if folder not in sys.path:
            sys.path.append(folder)
    os.environ.update(environment())
    os.environ.pop("SPARK_HOME", None)  # another Spark on the machine is not under test
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[2]").appName("spark_it")
    for name, value in {**settings_for(directory), **(settings or {})}.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    session.sparkContext.setLogLevel("ERROR")
    return session


def python_folders() -> list[str]:
    """Return the folders of PySpark and its dependencies."""
    libraries = (spark_tools.arrow_folder(), spark_tools.pandas_folder())
    return [str(spark_tools.pyspark_folder()), *map(str, libraries)]


def environment() -> dict[str, str]:
    """Return the variables with which Spark and its workers use this Python and these paths."""
    path = [*os.environ.get("PYTHONPATH", "").split(os.pathsep), *python_folders()]
    return {
        "PYTHONPATH": os.pathsep.join(dict.fromkeys(filter(None, path))),
        "JAVA_HOME": str(spark_tools.java_home()),
        "SPARK_LOCAL_IP": HOST,
        "PYSPARK_PYTHON": sys.executable,
    }


def settings_for(directory: Path) -> dict[str, str]:
    """Return the settings of a small local Spark with the connector."""
    return {
        "spark.jars": ",".join(map(str, spark_tools.connector_jars())),
        "spark.driver.memory": "1g",
        "spark.driver.host": HOST,
        "spark.driver.bindAddress": HOST,
        # Fastest for short runs: no collector threads, no second compiler.
        "spark.driver.extraJavaOptions": (
            f"-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.io.tmpdir={directory}"
        ),
        "spark.local.dir": str(directory / "local"),
        "spark.sql.warehouse.dir": str(directory / "warehouse"),
        "spark.sql.shuffle.partitions": "2",
        # Tests sum up all batches; Spark's default is a hundred.
        "spark.sql.streaming.numRecentProgressUpdates": "10000",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
    }


def stop(session: SparkSession) -> None:
    """Stop Spark, and wait for the end of its Java process."""
    from pyspark import SparkContext

    session.stop()
    gateway = SparkContext._gateway
    assert gateway is not None
    gateway.shutdown()
    SparkContext._gateway = None
    SparkContext._jvm = None
    process = gateway.proc
    process.stdin.close()  # it ends with its standard input
    process.wait(30)
