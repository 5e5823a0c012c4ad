"""Apache Kafka's command-line tools, each run a Java process of about a second."""

from __future__ import annotations

import subprocess

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
    done = subprocess.run(
        [*java_start.command("-Xmx256m", tool), address_flag, bootstrap, *arguments],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    return done.returncode, done.stdout
