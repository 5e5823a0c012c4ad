"""Figures of wirebroker and Apache Kafka, with ratios and targets."""

from __future__ import annotations

import json
import statistics
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING

from benchmarks.measurement.pairs import Bounded, bounded

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from benchmarks.measurement.pairs import Pairs

_HEAD = (
    "| what | ours | theirs | times better | to reach |",
    "| --- | ---: | ---: | ---: | ---: |",
)


@dataclass(frozen=True)
class Figure:
    """A row of the table; values with the same index are from one pair.

    Attributes:
        is_more_better: True for rates.
        least_ratio: The target: how many times better.
        most_longer: Or the target: how much more than theirs, in the unit.
        digits: Decimal places.
    """

    name: str
    unit: str
    ours: list[float] = field(default_factory=list[float])
    theirs: list[float] = field(default_factory=list[float])
    is_more_better: bool = False
    least_ratio: float | None = None
    most_longer: float | None = None
    digits: int = 0

    def ratio(self) -> Bounded:
        pairs = zip(self.ours, self.theirs, strict=True)
        if self.is_more_better:
            return bounded(
                [wirebroker_value / kafka_value for wirebroker_value, kafka_value in pairs]
            )
        return bounded([kafka_value / wirebroker_value for wirebroker_value, kafka_value in pairs])

    def is_reached(self) -> bool | None:
        if self.most_longer is not None:
            longer = statistics.median(self.ours) - statistics.median(self.theirs)
            return longer <= self.most_longer
        return None if self.least_ratio is None else self.ratio().median >= self.least_ratio

    def row(self) -> str:
        wirebroker_median, kafka_median = (
            f"{statistics.median(values):,.{self.digits}f}" for values in (self.ours, self.theirs)
        )
        target = "" if self.least_ratio is None else f"{self.least_ratio:g}"
        if self.most_longer is not None:
            target = f"+ {self.most_longer:g} {self.unit}"
        verdict = {None: "", True: " ✓", False: " ✗"}[self.is_reached()]
        cells = [
            self.name,
            f"{wirebroker_median} {self.unit}",
            kafka_median,
            str(self.ratio()),
            target + verdict,
        ]
        return f"| {' | '.join(cells)} |"


def of_pairs(
    name: str, pairs: Pairs, *, unit: str, reach: tuple[float | None, float | None]
) -> list[Figure]:
    """Return a case's rate, CPU and, if reported, latency; `reach` has the first two's targets."""

    def figure(quantity: str, unit: str, metric: str, **options: float | None) -> Figure:
        wirebroker_values, kafka_values = (
            [getattr(run, metric) for run in runs] for runs in (pairs.ours, pairs.theirs)
        )
        is_rate = metric == "rate"
        return Figure(
            f"{name}: {quantity}",
            unit,
            wirebroker_values,
            kafka_values,
            is_more_better=is_rate,
            **options,  # type: ignore[arg-type]
        )

    rate, cpu = reach
    figures = [
        figure("rate", f"{unit}s/s", "rate", least_ratio=rate),
        figure(f"CPU per {unit}", "us", "cpu_us", least_ratio=cpu, digits=1),
    ]
    wirebroker_latencies, kafka_latencies = (
        [run.extra["p99_us"] / 1000 for run in runs if "p99_us" in run.extra]
        for runs in (pairs.ours, pairs.theirs)
    )
    if wirebroker_latencies and kafka_latencies:
        figures.append(
            Figure(f"{name}: p99", "ms", wirebroker_latencies, kafka_latencies, digits=2)
        )
    return figures


def table(figures: Iterable[Figure]) -> str:
    return "\n".join([*_HEAD, *(figure.row() for figure in figures)])


def write(folder: Path, facts: Mapping[str, str], figures: Iterable[Figure]) -> None:
    """Write `cluster.md` and `cluster.json`; other figures in these files stay."""
    folder.mkdir(parents=True, exist_ok=True)
    figures_by_name = {figure.name: figure for figure in read(folder)}
    figures_by_name |= {figure.name: figure for figure in figures}
    facts_text = ", ".join(f"{name}: {fact}" for name, fact in facts.items())
    (folder / "cluster.md").write_text(f"{facts_text}\n\n{table(figures_by_name.values())}\n")
    content = {
        "facts": dict(facts),
        "figures": [asdict(figure) for figure in figures_by_name.values()],
    }
    (folder / "cluster.json").write_text(json.dumps(content, indent=1) + "\n")


def read(folder: Path) -> list[Figure]:
    path = folder / "cluster.json"
    if not path.exists():
        return []
    return [Figure(**fields) for fields in json.loads(path.read_text())["figures"]]
