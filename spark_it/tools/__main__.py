"""Install what the tests of Spark need: python -m spark_it.tools.

Tests do not need this: they install on first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from spark_it.tools import spark_tools
from tests.support.tools.tools import install_all

if TYPE_CHECKING:
    from collections.abc import Iterator


def _install() -> Iterator[str]:
    yield f"PySpark: {spark_tools.pyspark_folder()}"
    yield f"PyArrow: {spark_tools.arrow_folder()}"
    yield f"pandas: {spark_tools.pandas_folder()}"
    yield f"Kafka connector: {len(spark_tools.connector_jars())} jars"
    yield f"JAVA_HOME: {spark_tools.java_home()}"


if __name__ == "__main__":
    sys.exit(install_all(__doc__, _install))
