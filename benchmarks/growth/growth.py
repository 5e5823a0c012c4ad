"""The cost of a request as a broker has more partitions, connections, groups or segments.

    python -m benchmarks.growth.growth [--quick] [--only TEXT] [--ours CHECKOUT] [--apache]
        [--output DIR [--resume]] [--let-cores-sleep]

Writes a table, and with --output growth.md, growth.json and growth.svg (needs matplotlib: extra
`bench`). --apache adds Apache Kafka. No cost of wirebroker may grow faster than its size: the exit
status is 1 if the slope of log(cost) over log(size), from the smallest size to any other, exceeds 1
by more than noise explains.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.growth import growth_cases, growth_report, reader_cases
from benchmarks.growth.growth_report import Series, slope
from benchmarks.measurement.awake_cores import add_option, awake_cores
from benchmarks.measurement.brokers import Checkout, apache_kafka, version
from benchmarks.measurement.machine import describe
from tests.support.brokers.brokers import Broker, BrokerError
from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from benchmarks.load.growth_requests import Point

STEEPEST_SLOPE = 1.15
OURS = "wirebroker"
THEIRS = "Apache Kafka"

SETTINGS = {
    "log.retention.check.interval.ms": "3600000",
    "group.max.session.timeout.ms": "1800000",
    "offsets.topic.num.partitions": "8",
    # Kafka's default, 50, would delay opening 5,000 connections by seconds.
    "socket.listen.backlog.size": "4096",
}


def main() -> int:
    options = _arguments()
    with awake_cores(enabled=not options.let_cores_sleep) as cores:
        return _measure_all(options, cores)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, shorter runs")
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--ours", type=Path, help="wirebroker checkout (default: this one)")
    parser.add_argument("--apache", action="store_true", help="measure Apache Kafka as well")
    parser.add_argument("--output", type=Path, help="write growth.md, .json and .svg here")
    parser.add_argument("--resume", action="store_true", help="continue the run in --output")
    add_option(parser)
    return parser.parse_args()


def _measure_all(options: argparse.Namespace, cores: str) -> int:
    output: Path | None = options.output
    results: list[Series] = []
    if output and options.resume:
        results = growth_report.read_json(output / "growth.json", cores)
    peer = f" and Apache Kafka {tools.KAFKA_VERSION}" if options.apache else ""
    date = time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime())
    title = f"{version(options.ours)}{peer}, {date}, {describe()}, cores {cores}"
    makers: dict[str, Callable[[Path], Broker]] = {
        OURS: lambda directory: Checkout(directory, options.ours, SETTINGS)
    }
    if options.apache:
        makers[THEIRS] = lambda directory: apache_kafka(directory, SETTINGS)
    kinds = _kinds()
    for kind in kinds:
        for name, make in makers.items():
            is_done = any((series.kind, series.broker) == (kind, name) for series in results)
            if options.only in kind and not is_done:
                results += measure(kind, name, make, quick=options.quick)
    order = list(kinds)
    results.sort(key=lambda series: (order.index(series.kind), series.broker != OURS))
    text = f"{title}\n\n{growth_report.table(results)}\n"
    print(text)
    if output:
        output.mkdir(parents=True, exist_ok=True)
        (output / "growth.md").write_text(text)
        growth_report.write_json(output / "growth.json", results, cores)
        growth_report.plot(output / "growth.svg", results, title)
    return verdict(results)


def _kinds() -> dict[str, Callable[..., Iterator[Point]]]:
    return growth_cases.KINDS | reader_cases.KINDS


def measure(kind: str, name: str, make: Callable[[Path], Broker], *, quick: bool) -> list[Series]:
    """Measure one kind on one broker; note failures of Apache Kafka, raise ours."""
    series_by_cost: dict[str, Series] = {}
    with tempfile.TemporaryDirectory(prefix="wirebroker-growth-") as directory:
        broker = make(Path(directory))
        try:
            broker.start()
            for cost, unit, size, value in _kinds()[kind](broker, quick=quick):
                series = Series(kind, name, cost, unit, is_checked=kind != "old data")
                series_by_cost.setdefault(cost, series).points[size] = value
                print(
                    f"{name}, {cost}: {size:,} -> {value:,.2f} {unit}", file=sys.stderr, flush=True
                )
        except (BrokerError, RuntimeError, AssertionError, OSError) as error:
            if name == OURS:
                raise
            note = f"then failed: {str(error).splitlines()[-1][:80]}"
            last = next(reversed(series_by_cost), kind)
            series_by_cost.setdefault(last, Series(kind, name, kind, "")).note = note
            print(f"{name}, {last}: {note}", file=sys.stderr, flush=True)
        finally:
            broker.stop()
    return list(series_by_cost.values())


def verdict(results: Sequence[Series]) -> int:
    steep = [
        series.cost
        for series in results
        if series.broker == OURS and series.is_checked and slope(series.points) > STEEPEST_SLOPE
    ]
    for name in steep:
        print(f"worse than linear: {name}", file=sys.stderr)
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
