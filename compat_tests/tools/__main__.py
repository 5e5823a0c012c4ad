"""Install every foreign tool of the tests: python -m compat_tests.tools.

Tests do not need this: tests/support/tools/tools.py and the modules next to this one install tools
on first use.
"""

from __future__ import annotations

import argparse
import sys

from compat_tests.support import tools_browser, tools_go, tools_node
from compat_tests.transactions.drivers import java_programs
from tests.support.brokers import java_start
from tests.support.tools import tools
from tests.support.tools.tools import say


def main() -> int:
    argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    ).parse_args()
    try:
        say(f"java: {tools.java_command()}")
        say(f"javac: {' '.join(tools.javac_command())}")
        say(f"Apache Kafka {tools.KAFKA_VERSION}: {tools.kafka_jars()}")
        say(f"options of a quick start: {' '.join(java_start.options())}")
        say(f"Kafka Streams: {java_programs.streams_jars()}")
        say(f"Node: {tools_node.node_command()}, packages {tools_node.packages()}")
        say(f"browser: {tools_browser.browser_command() or 'none'}, {tools_browser.axe_script()}")
        # Only tests that run nightly use these.
        say(f"Go: {tools_go.go_command()}")
        say(f"kcat: {' '.join(tools.kcat_command())}")
    except (tools.ToolError, OSError) as error:
        say(f"tools: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
