"""How long a verb takes, beside what else asks a cluster: processor time and time by the clock.

    python -m benchmarks.verb_times            # starts a broker, asks it, prints a table

Processor time is what a busy machine doesn't change much; each row is the median of some runs.
"""

from __future__ import annotations

import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tests.support.brokers import Wirebroker

RUNS = 7

_KAFKA_PYTHON = """
import sys
from kafka.admin import KafkaAdminClient
print(KafkaAdminClient(bootstrap_servers=sys.argv[1]).list_topics())
"""


def main() -> None:
    """Measure and print."""
    wirebroker = [sys.executable, "-m", "wirebroker"]
    with tempfile.TemporaryDirectory() as folder:
        broker = Wirebroker(Path(folder))
        broker.start()
        ask = ["-b", broker.bootstrap]
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "wirebroker --version": [*wirebroker, "--version"],
            "wirebroker topic list": [*wirebroker, "topic", "list", *ask],
            "wirebroker group list": [*wirebroker, "group", "list", *ask],
            "wirebroker cluster": [*wirebroker, "cluster", *ask],
            "wirebroker kafka-topics --list": [
                *(*wirebroker, "kafka-topics", "--bootstrap-server", broker.bootstrap, "--list"),
            ],
            "kafka-python, topics": [sys.executable, "-c", _KAFKA_PYTHON, broker.bootstrap],
        }
        if shutil.which("kcat"):
            commands["kcat -L"] = ["kcat", "-L", "-b", broker.bootstrap]
        sys.stdout.write(f"{'':32}{'CPU ms':>8}{'clock ms':>10}\n")
        for name, command in commands.items():
            cpu_ms, clock_ms = measured(command)
            sys.stdout.write(f"{name:32}{cpu_ms:8.0f}{clock_ms:10.0f}\n")
        broker.stop()


def measured(command: list[str]) -> tuple[float, float]:
    """Return the medians of processor time and time by the clock, ms."""
    times = [_once(command) for _ in range(RUNS)]
    return statistics.median(each[0] for each in times), statistics.median(
        each[1] for each in times
    )


def _once(command: list[str]) -> tuple[float, float]:
    before, began = os.times(), time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    clock_ms = (time.monotonic() - began) * 1000
    after = os.times()
    cpu_s = after.children_user - before.children_user
    cpu_s += after.children_system - before.children_system
    return cpu_s * 1000, clock_ms


if __name__ == "__main__":
    main()
