"""Pictures of Spark's benchmarks, as SVG (needs matplotlib: extra `bench`)."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.spark.spark_reads import ReadPairs


def ratios(path: Path, rows: Sequence[ReadPairs]) -> None:
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 1 + 0.4 * len(rows)), layout="constrained")
    names = [f"{row.size}, {row.codec}" for row in rows][::-1]
    for offset, label, values in (
        (0.18, "rate", [row.rate_ratio for row in rows]),
        (-0.18, "CPU per record", [row.cpu_ratio for row in rows]),
    ):
        positions = [position + offset for position in range(len(rows))]
        bars = axes.barh(positions, values[::-1], height=0.34, label=label)
        axes.bar_label(bars, fmt="%.1f", padding=2, fontsize=7)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("times better than the connector (medians)")
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)


def latencies(path: Path, delays: Sequence[float]) -> None:
    pyplot = _pyplot()
    figure, axes = pyplot.subplots(figsize=(7, 2.5), layout="constrained")
    axes.plot(range(len(delays)), delays, linewidth=0.8)
    middle = statistics.median(delays)
    axes.axhline(middle, color="black", linewidth=0.8, label=f"median {middle:.2f} s")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("windows, in their order")
    axes.set_ylabel("s after its end")
    axes.legend()
    figure.savefig(path)
    pyplot.close(figure)


def _pyplot() -> Any:
    import matplotlib as mpl

    mpl.use("svg")
    # Makes files reproducible.
    mpl.rcParams["svg.hashsalt"] = "wirebroker"
    from matplotlib import pyplot

    return pyplot
