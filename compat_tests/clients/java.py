"""Apache Kafka's command-line tools.

They share one Java process, because a start takes a second. With JAVA_TOOL_OPTIONS, which Java
reads at its start, each run has its own.
"""

from __future__ import annotations

import atexit
import os
import subprocess
from functools import cache

from compat_tests.support.java_tools import JavaTools
from tests.support.brokers import java_start
from tests.support.tools import tools

_TOOLS = "org.apache.kafka.tools"
TOPICS = f"{_TOOLS}.TopicCommand"
ACLS = f"{_TOOLS}.AclCommand"
CONFIGS = tools.CONFIG_COMMAND
OFFSETS = f"{_TOOLS}.GetOffsetShell"
CONSOLE_PRODUCER = f"{_TOOLS}.ConsoleProducer"
CONSOLE_CONSUMER = f"{_TOOLS}.consumer.ConsoleConsumer"
PRODUCER_PERFORMANCE = f"{_TOOLS}.ProducerPerformance"
API_VERSIONS = f"{_TOOLS}.BrokerApiVersionsCommand"

TIMEOUT_S = 90.0  # per run; a start alone can take 3 s on a busy machine


def run(bootstrap: str, tool: str, *arguments: str, text: str = "") -> str:
    """Run a tool; return its output, or raise an error with it."""
    status, printed = attempt(bootstrap, tool, *arguments, text=text)
    assert status == 0, f"{tool} {' '.join(arguments)}: status {status}\n{printed}"
    return printed


def attempt(
    bootstrap: str,
    tool: str,
    *arguments: str,
    text: str = "",
    address_flag: str = "--bootstrap-server",
) -> tuple[int, str]:
    """Run a tool; return its status and all output, including errors."""
    words = [address_flag, bootstrap, *arguments]
    if "JAVA_TOOL_OPTIONS" not in os.environ:
        answer = _shared().run(tool, words, text, timeout_s=TIMEOUT_S)
        return answer.status, answer.out + answer.err
    done = subprocess.run(
        [*java_start.command("-Xmx256m", tool), *words],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout


@cache
def _shared() -> JavaTools:
    tools_of_this_process = JavaTools()
    atexit.register(tools_of_this_process.close)
    return tools_of_this_process
