"""Start to the first response, and memory, compared with Apache Kafka in pairs.

    python -m benchmarks.scenarios.start_and_memory [--pairs 9] [--ours CHECKOUT] [--output DIR]
        [--let-cores-sleep]

Both brokers take each step in turn (A B A B), on a formatted data directory after a clean stop,
with its files in the page cache.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.measurement.awake_cores import add_option, awake_cores
from benchmarks.measurement.brokers import Checkout, apache_kafka, version
from benchmarks.measurement.machine import cpu_seconds, describe, resident_mb
from benchmarks.measurement.pairs import bounded

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.support.brokers.brokers import Broker

IDLE_CONNECTIONS = 1000
# Metadata v1 for all topics, with its length.
METADATA_REQUEST = struct.pack(">ihhihi", 14, 3, 1, 7, -1, -1)


class Figures(NamedTuple):
    start_ms: float  # from exec to the first Metadata response
    start_cpu_ms: float
    rss_mb: float
    rss_idle_mb: float  # with IDLE_CONNECTIONS open


_TITLES = {
    "start_ms": "start to the first response (ms)",
    "start_cpu_ms": "CPU of the start (ms)",
    "rss_mb": "memory after the start (MB)",
    "rss_idle_mb": f"memory with {IDLE_CONNECTIONS:,} idle connections (MB)",
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pairs", type=int, default=9)
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--output", type=Path, help="write start.md and start.json here")
    add_option(parser)
    options = parser.parse_args()
    with awake_cores(enabled=not options.let_cores_sleep) as cores:
        rounds = _measure_all(options.ours, options.pairs)
    facts = f"{version(options.ours)}, {describe()}, cores {cores}, {options.pairs} pairs"
    text = f"{facts}\n\n{table(rounds)}\n"
    print(text)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "start.md").write_text(text)
        content = {name: [run._asdict() for run in runs] for name, runs in rounds.items()}
        (options.output / "start.json").write_text(json.dumps(content, indent=1) + "\n")


def _measure_all(checkout: Path | None, pairs: int) -> dict[str, list[Figures]]:
    with tempfile.TemporaryDirectory(prefix="wirebroker-start-") as directory:
        brokers: dict[str, Broker] = {
            "ours": Checkout(Path(directory) / "ours", checkout),
            "theirs": apache_kafka(Path(directory) / "theirs", {}),
        }
        return measure_rounds(brokers, pairs)


def measure_rounds(brokers: Mapping[str, Broker], count: int) -> dict[str, list[Figures]]:
    rounds: dict[str, list[Figures]] = {name: [] for name in brokers}
    for broker in brokers.values():
        broker.start()  # formats the directory, and loads the files into the page cache
        broker.stop()
    for number in range(count):
        for name, broker in brokers.items():
            rounds[name].append(measure(broker))
            print(f"{number + 1}: {name} {rounds[name][-1]}", file=sys.stderr, flush=True)
    return rounds


def measure(broker: Broker) -> Figures:
    began = time.monotonic()
    broker.start()
    ask_metadata(broker.port)
    start_ms = (time.monotonic() - began) * 1000
    try:
        cpu_ms = cpu_seconds(broker.process_id) * 1000
        rss = resident_mb(broker.process_id)
        sockets = [
            socket.create_connection(("127.0.0.1", broker.port)) for _ in range(IDLE_CONNECTIONS)
        ]
        ask_metadata(broker.port)
        rss_idle = resident_mb(broker.process_id)
        for sock in sockets:
            sock.close()
    finally:
        broker.stop()
    return Figures(start_ms, cpu_ms, rss, rss_idle)


def ask_metadata(port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=5) as sock:
                sock.sendall(METADATA_REQUEST)
                if len(sock.recv(4)) == 4:
                    return
        except OSError:
            if time.monotonic() > deadline:
                raise


def table(rounds: Mapping[str, Sequence[Figures]]) -> str:
    """Return each broker's medians, and the others' ratios to the first, with 95 % bounds."""
    first, *others = rounds
    heads = [*rounds, *(f"{name} / {first}" for name in others)]
    rows = [f"| what | {' | '.join(heads)} |", f"| --- |{' ---: |' * len(heads)}"]
    for field, title in _TITLES.items():
        columns = {
            name: [float(getattr(run, field)) for run in runs] for name, runs in rounds.items()
        }
        medians = [f"{statistics.median(column):,.0f}" for column in columns.values()]
        ratios = [
            str(bounded([b / a for a, b in zip(columns[first], columns[name], strict=True)]))
            for name in others
        ]
        rows.append(f"| {title} | {' | '.join(medians + ratios)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    main()
