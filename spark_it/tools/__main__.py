"""Install what the tests of Spark need: python -m spark_it.tools.

Tests do not need this: they install on first use.
"""

from __future__ import annotations

import argparse
import sys

from spark_it.tools import spark_tools
from tests.support.tools.tools import ToolError, say


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        say(f"PySpark: {spark_tools.pyspark_folder()}")
        say(f"PyArrow: {spark_tools.arrow_folder()}")
        say(f"pandas: {spark_tools.pandas_folder()}")
        say(f"Kafka connector: {len(spark_tools.connector_jars())} jars")
        say(f"JAVA_HOME: {spark_tools.java_home()}")
    except (ToolError, OSError) as error:
        say(f"tools: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
