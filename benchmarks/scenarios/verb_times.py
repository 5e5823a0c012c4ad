"""CPU and elapsed time of a verb, compared with other tools.

    python -m benchmarks.scenarios.verb_times [--runs 9] [--kafka]

Starts a broker, runs the commands in turn and prints medians. kcat runs if it is installed, Apache
Kafka's own script with --kafka. The verbs run from this checkout; in an installed wheel they take
some milliseconds less.
"""

from __future__ import annotations

import argparse
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from benchmarks.measurement.machine import describe
from tests.support.brokers import java_start
from tests.support.brokers.brokers import Wirebroker

_KAFKA_PYTHON = """
import sys
from kafka.admin import KafkaAdminClient
print(KafkaAdminClient(bootstrap_servers=sys.argv[1]).list_topics())
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=9)
    parser.add_argument(
        "--kafka", action="store_true", help="measure Kafka's script as well: needs Java"
    )
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        broker = Wirebroker(Path(folder))
        broker.start()
        try:
            times = measured(commands_for(broker.bootstrap, arguments.kafka), arguments.runs)
        finally:
            broker.stop()
    sys.stdout.write(f"{describe()}\n\n| | CPU, ms | by the clock, ms |\n| --- | --- | --- |\n")
    for name, command_times in times.items():
        cpu_ms, clock_ms = (
            statistics.median(values) for values in zip(*command_times, strict=True)
        )
        sys.stdout.write(f"| {name} | {cpu_ms:.0f} | {clock_ms:.0f} |\n")


def commands_for(bootstrap: str, has_kafka: bool) -> dict[str, list[str]]:
    wirebroker = [sys.executable, "-m", "wirebroker"]
    address_options = ["-b", bootstrap]
    commands = {
        "`python -c pass`": [sys.executable, "-c", "pass"],
        "`wirebroker --version`": [*wirebroker, "--version"],
        "`wirebroker topic list`": [*wirebroker, "topic", "list", *address_options],
        "`wirebroker group list`": [*wirebroker, "group", "list", *address_options],
        "`wirebroker cluster`": [*wirebroker, "cluster", *address_options],
        "`wirebroker kafka-topics --list`": [
            *(*wirebroker, "kafka-topics", "--bootstrap-server", bootstrap, "--list"),
        ],
        "kafka-python, topics": [sys.executable, "-c", _KAFKA_PYTHON, bootstrap],
    }
    if shutil.which("kcat"):
        commands["`kcat -L`"] = ["kcat", "-L", *address_options]
    if has_kafka:
        tool = java_start.command("-Xmx256m", "org.apache.kafka.tools.TopicCommand")
        list_options = ["--bootstrap-server", bootstrap, "--list"]
        commands["`kafka-topics.sh --list`"] = [*tool, *list_options]
    return commands


def measured(commands: dict[str, list[str]], runs: int) -> dict[str, list[tuple[float, float]]]:
    times: dict[str, list[tuple[float, float]]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            times[name].append(_once(command))
    return times


def _once(command: list[str]) -> tuple[float, float]:
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    subprocess.run(command, check=True, capture_output=True)
    clock_ms = (time.monotonic() - began) * 1000
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu_s = after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime
    return cpu_s * 1000, clock_ms


if __name__ == "__main__":
    main()
