"""What one request costs as a broker holds more: partitions, connections, groups, segments.

    python -m benchmarks.growth [--quick] [--only TEXT] [--apache] [--output DIR]

Writes a table, and with --output growth.md and growth.svg (needs matplotlib: extra `bench`). None
may grow faster than what it depends on: exit status 1 if the slope of log(cost) over log(size),
from the smallest size to any other, exceeds 1 by more than the machine's noise explains.
"""

from __future__ import annotations

import argparse
import math
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks import growth_cases
from benchmarks.machine import describe
from compat_tests import tools
from compat_tests.brokers import ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

STEEPEST_SLOPE = 1.15

SETTINGS = {
    "log.retention.check.interval.ms": "3600000",
    "group.max.session.timeout.ms": "1800000",
    "offsets.topic.num.partitions": "8",
}


@dataclass
class Series:
    """The cost of one thing over growing sizes.

    Attributes:
        unit: Of the cost.
        points: Size -> cost.
        is_checked: Whether it must not grow faster than the size; latencies are noise for that.
    """

    unit: str
    points: dict[int, float] = field(default_factory=dict[int, float])
    is_checked: bool = True


def slope(points: Mapping[int, float]) -> float:
    """Return the steepest slope of log cost over log size, from the smallest size to another.

    0: the cost stays, 1: it grows with the size. Sizes and costs are above 0; one point has no
    slope, which counts as 0.
    """
    (first, cost), *rest = sorted(points.items())
    return max((math.log(each / cost) / math.log(size / first) for size, each in rest), default=0.0)


def table(results: Mapping[str, Series]) -> str:
    """Return the results in Markdown."""
    rows = ["| cost | size → cost | slope |", "| --- | --- | ---: |"]
    for name, series in results.items():
        points = ", ".join(f"{size:,} → {cost:,.2f}" for size, cost in series.points.items())
        steepest = f"{slope(series.points):.2f}" if series.is_checked else ""
        rows.append(f"| {name} ({series.unit}) | {points} | {steepest} |")
    return "\n".join(rows)


def plot(path: Path, results: Mapping[str, Series], title: str) -> None:
    """Draw every series in a frame of its own."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    shown = {name: series for name, series in results.items() if len(series.points) > 1}
    rows = math.ceil(len(shown) / 3)
    figure, axes = pyplot.subplots(
        rows, 3, figsize=(13, 3.2 * rows), layout="constrained", squeeze=False
    )
    for place in axes.flat[len(shown) :]:
        place.set_visible(False)
    for place, (name, series) in zip(axes.flat, shown.items(), strict=False):
        sizes, costs = list(series.points), list(series.points.values())
        place.plot(sizes, costs, marker="o")
        place.plot(sizes, [costs[0] * size / sizes[0] for size in sizes], ":", label="linear")
        place.set_xscale("log")
        place.set_yscale("log")
        place.set_ylim(min(costs) / 3, max(costs) * 3)
        place.set_title(name, fontsize=9)
        place.set_ylabel(series.unit)
        place.legend()
    figure.suptitle(title, fontsize=8)
    figure.savefig(path)


def main() -> int:
    """Measure what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller sizes, shorter runs")
    parser.add_argument("--only", default="", help="kinds with this in their name")
    parser.add_argument("--apache", action="store_true", help="of Apache Kafka instead")
    parser.add_argument("--output", type=Path, help="write growth.md and growth.svg here")
    options = parser.parse_args()
    broker_class: type[Broker] = ApacheKafka if options.apache else Wirebroker
    results: dict[str, Series] = {}
    for name, measure in growth_cases.KINDS.items():
        if options.only not in name:
            continue
        if options.apache and name in growth_cases.OURS_ONLY:
            continue
        with tempfile.TemporaryDirectory(prefix="wirebroker-growth-") as directory:
            broker = broker_class(Path(directory), SETTINGS)
            broker.start()
            try:
                for cost, unit, size, value in measure(broker, quick=options.quick):
                    series = Series(unit, is_checked=name != "old data")
                    results.setdefault(cost, series).points[size] = value
                    print(f"{cost}: {size:,} -> {value:,.2f} {unit}", file=sys.stderr, flush=True)
            finally:
                broker.stop()
    of = f"Apache Kafka {tools.KAFKA_VERSION}" if options.apache else "wirebroker"
    title = f"{of}, {time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())}, {describe()}"
    text = f"{title}\n\n{table(results)}\n"
    print(text)
    if options.output:
        options.output.mkdir(parents=True, exist_ok=True)
        (options.output / "growth.md").write_text(text)
        plot(options.output / "growth.svg", results, title)
    return _verdict(results)


def _verdict(results: Mapping[str, Series]) -> int:
    steep: Sequence[str] = [
        name
        for name, series in results.items()
        if series.is_checked and slope(series.points) > STEEPEST_SLOPE
    ]
    for name in steep:
        print(f"worse than linear: {name}", file=sys.stderr)
    return 1 if steep else 0


if __name__ == "__main__":
    sys.exit(main())
