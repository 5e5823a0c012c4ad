"""Reports of growth: costs by size as a Markdown table, JSON and a picture."""

from __future__ import annotations

import dataclasses
import json
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from benchmarks.measurement.awake_cores import check_same

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from matplotlib.axes import Axes


@dataclass
class Series:
    """A cost on one broker at growing sizes.

    Attributes:
        is_checked: Whether it must not grow faster than the size; else sizes only number cases.
        note: What the broker could not do.
    """

    kind: str
    broker: str
    cost: str
    unit: str
    is_checked: bool = True
    points: dict[int, float] = field(default_factory=dict[int, float])
    note: str = ""


def slope(points: Mapping[int, float]) -> float:
    """Return the steepest slope of log cost over log size, from the smallest size to another.

    0 means a constant cost, 1 a proportional one.
    """
    (first, cost), *rest = sorted(points.items())
    return max(
        (math.log(larger_cost / cost) / math.log(size / first) for size, larger_cost in rest),
        default=0.0,
    )


def table(results: Sequence[Series]) -> str:
    rows = ["| cost | broker | size → cost | slope |", "| --- | --- | --- | ---: |"]
    for series in (member for group in by_cost(results).values() for member in group):
        points = [f"{size:,} → {cost:,.2f}" for size, cost in series.points.items()]
        points_text = ", ".join([*points, *([series.note] if series.note else [])])
        steepest = f"{slope(series.points):.2f}" if series.is_checked and points else ""
        name = f"{series.cost} ({series.unit})" if series.unit else series.cost
        rows.append(f"| {name} | {series.broker} | {points_text} | {steepest} |")
    return "\n".join(rows)


def by_cost(results: Sequence[Series]) -> dict[str, list[Series]]:
    groups: dict[str, list[Series]] = {}
    for series in results:
        groups.setdefault(series.cost, []).append(series)
    return groups


def write_json(path: Path, results: Sequence[Series], cores: str) -> None:
    content = {"cores": cores, "series": [dataclasses.asdict(series) for series in results]}
    path.write_text(f"{json.dumps(content, indent=1)}\n")


def read_json(path: Path, cores: str) -> list[Series]:
    """Return the series from `write_json`, if any.

    Raises:
        ValueError: The cores were in another state (awake_cores.py).
    """
    if not path.exists():
        return []
    content = json.loads(path.read_text())
    check_same(path, content["cores"], cores)
    results = [Series(**series) for series in content["series"]]
    for series in results:  # JSON keys are text
        series.points = {int(size): cost for size, cost in series.points.items()}
    return results


def plot(path: Path, results: Sequence[Series], title: str) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    groups = by_cost([series for series in results if len(series.points) > 1])
    rows = math.ceil(len(groups) / 3)
    figure, axes = pyplot.subplots(
        rows, 3, figsize=(13, 3.2 * rows), layout="constrained", squeeze=False
    )
    for axis in axes.flat[len(groups) :]:
        axis.set_visible(False)
    for axis, (name, group) in zip(axes.flat, groups.items(), strict=False):
        for series in group:
            axis.plot(list(series.points), list(series.points.values()), "o-", label=series.broker)
        _draw_scales(axis, group)
        axis.set_title(name, fontsize=9)
        axis.legend(fontsize=8)
    figure.suptitle(title, fontsize=8)
    figure.savefig(path)


def _draw_scales(axis: Axes, group: Sequence[Series]) -> None:
    from matplotlib.ticker import LogLocator, StrMethodFormatter

    first = group[0]
    costs = [cost for series in group for cost in series.points.values()]
    axis.set_yscale("log")
    axis.set_ylim(min(costs) / 3, max(costs) * 3)
    axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_ylabel(first.unit)
    axis.set_xscale("log")
    sizes = list(first.points)
    axis.set_xticks(sizes, [f"{size:,}" for size in sizes])
    axis.minorticks_off()
    if first.is_checked:
        linear = [first.points[sizes[0]] * size / sizes[0] for size in sizes]
        axis.plot(sizes, linear, ":", color="grey", label="linear")
