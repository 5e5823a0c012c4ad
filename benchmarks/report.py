"""The result as a Markdown table, JSON and a picture of the ratios."""

from __future__ import annotations

import dataclasses
import json
import statistics
from typing import TYPE_CHECKING

from benchmarks.measurement.awake_cores import MAY_SLEEP, check_same
from benchmarks.measurement.pairs import Pairs, Run

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from benchmarks.cases import Case
    from benchmarks.measurement.pairs import Bounded

_HEAD = (
    "| case | plain | ours | theirs | CPU ratio | rate ratio | to reach (rate, CPU) "
    "| plain: CPU, rate ratio | CPU us: plain, ours, theirs | p99 | cores, runs |",
    "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
)


def table(results: Mapping[str, Pairs], cases: Sequence[Case]) -> str:
    rows = [_row(case, results[case.name]) for case in cases if case.name in results]
    return "\n".join([*_HEAD, *rows])


def _row(case: Case, pairs: Pairs) -> str:
    rate, cpu = pairs.rate_ratio(), pairs.cpu_ratio()
    all_runs = (pairs.plain, pairs.ours, pairs.theirs)
    plain_rate, wirebroker_rate, peer_rate = (
        f"{statistics.median(run.rate for run in runs):,.0f}" if runs else "" for runs in all_runs
    )
    cpu_us = (f"{statistics.median(run.cpu_us for run in runs):.2f}" for runs in all_runs if runs)
    cells = [
        case.name,
        plain_rate,
        f"{wirebroker_rate} {case.unit}s/s",
        peer_rate,
        str(cpu),
        str(rate),
        "" if case.reach is None else f"{_target_text(case.reach)}{_verdict(case, rate, cpu)}",
        _plain_ratios(pairs),
        ", ".join(cpu_us),
        _tail(pairs),
        pairs.conditions,
    ]
    return f"| {' | '.join(cells)} |"


def _target_text(reach: tuple[float, float]) -> str:
    rate, cpu = reach
    return f"{rate or 'any'}, {cpu}"


def _plain_ratios(pairs: Pairs) -> str:
    if not pairs.plain:
        return ""
    cpu, rate = pairs.cpu_ratio(pairs.plain), pairs.rate_ratio(pairs.plain)
    return f"{cpu.median:.2f}, {rate.median:.2f}"


def _verdict(case: Case, rate: Bounded, cpu: Bounded) -> str:
    assert case.reach is not None
    is_reached = rate.median >= case.reach[0] and cpu.median >= case.reach[1]
    return " ✓" if is_reached else " ✗"


def _tail(pairs: Pairs) -> str:
    if not all("p99_us" in run.extra for run in (*pairs.ours, *pairs.theirs)):
        return ""
    wirebroker_ms, peer_ms = (_median_p99_ms(runs) for runs in (pairs.ours, pairs.theirs))
    return f"{wirebroker_ms:.2f} / {peer_ms:.2f} ms"


def _median_p99_ms(runs: Sequence[Run]) -> float:
    return statistics.median(run.extra["p99_us"] for run in runs) / 1000


def title(facts: Mapping[str, str]) -> str:
    return ", ".join(f"{name}: {fact}" for name, fact in facts.items())


def text(facts: Mapping[str, str], results: Mapping[str, Pairs], cases: Sequence[Case]) -> str:
    return f"{title(facts)}\n\n{table(results, cases)}\n"


def write(
    folder: Path, facts: Mapping[str, str], results: Mapping[str, Pairs], cases: Sequence[Case]
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "table.md").write_text(text(facts, results, cases))
    runs = {name: dataclasses.asdict(pairs) for name, pairs in results.items()}
    content = json.dumps({"facts": dict(facts), "cases": runs}, indent=1)
    (folder / "runs.json").write_text(f"{content}\n")


def read_json(path: Path, cores: str) -> dict[str, Pairs]:
    """Return the runs from `write`, if any.

    Raises:
        ValueError: The cores were in another state (awake_cores.py).
    """
    if not path.exists():
        return {}
    content = json.loads(path.read_text())
    check_same(path, content["facts"].get("cores", MAY_SLEEP), cores)
    cases = content["cases"]
    return {
        name: Pairs(
            [Run(**run) for run in pairs["ours"]],
            [Run(**run) for run in pairs["theirs"]],
            pairs["dropped"],
            [Run(**run) for run in pairs.get("plain", ())],
            pairs.get("conditions", ""),
        )
        for name, pairs in cases.items()
    }


def plot(path: Path, results: Mapping[str, Pairs], heading: str) -> None:
    """Draw the ratios with their bounds as an SVG (needs matplotlib: extra `bench`)."""
    import matplotlib as mpl

    mpl.use("svg")
    from matplotlib import pyplot

    names = list(results)[::-1]
    figure, axes = pyplot.subplots(figsize=(9, 1 + 0.45 * len(names)), layout="constrained")
    for offset, label, ratios in (
        (0.18, "CPU per record", [results[name].cpu_ratio() for name in names]),
        (-0.18, "rate", [results[name].rate_ratio() for name in names]),
    ):
        positions = [position + offset for position in range(len(names))]
        middles = [ratio.median for ratio in ratios]
        errors = [
            [ratio.median - ratio.low for ratio in ratios],
            [ratio.high - ratio.median for ratio in ratios],
        ]
        axes.barh(positions, middles, height=0.34, xerr=errors, label=label)
    axes.axvline(1, color="black", linewidth=0.8)
    axes.set_yticks(range(len(names)), names)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 1, 2, 4, 8], ["0.5", "1", "2", "4", "8"])
    axes.set_xlabel("times better than Apache Kafka (median, 95 % bounds)")
    axes.set_title(heading, fontsize=7)
    axes.legend()
    figure.savefig(path)
