"""Install every foreign tool of the tests: python -m compat_tests.tools.

Tests do not need this: tests/support/tools/tools.py and the modules next to this one install tools
on first use.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from compat_tests.support import tools_browser, tools_go, tools_node
from compat_tests.transactions.drivers import java_programs
from tests.support.brokers import java_start
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Iterator


def _install() -> Iterator[str]:
    yield f"java: {tools.java_command()}"
    yield f"javac: {' '.join(tools.javac_command())}"
    yield f"Apache Kafka {tools.KAFKA_VERSION}: {tools.kafka_jars()}"
    yield f"options of a quick start: {' '.join(java_start.options())}"
    yield f"Kafka Streams: {java_programs.streams_jars()}"
    yield f"Node: {tools_node.node_command()}, packages {tools_node.packages()}"
    yield f"browser: {tools_browser.browser_command() or 'none'}, {tools_browser.axe_script()}"
    # Only the nightly tests use these.
    yield f"Go: {tools_go.go_command()}"
    yield f"kcat: {' '.join(tools.kcat_command())}"


if __name__ == "__main__":
    sys.exit(tools.install_all(__doc__, _install))
