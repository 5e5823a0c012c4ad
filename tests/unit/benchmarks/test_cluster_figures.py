"""Evaluation of cluster figures: rows, ratios, targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

from benchmarks.cluster.figures import Figure, of_pairs, read, table, write
from benchmarks.measurement.pairs import Pairs, Run

if TYPE_CHECKING:
    from pathlib import Path


def test_lower_is_better_except_for_rates():
    assert Figure("memory", "MB", [50.0], [200.0]).ratio().median == 4
    assert Figure("rate", "MB/s", [50.0], [200.0], is_more_better=True).ratio().median == 0.25


def test_ratio_is_reached_at_its_minimum():
    assert Figure("memory", "MB", [50.0], [200.0], least_ratio=4).is_reached() is True
    assert Figure("memory", "MB", [51.0], [200.0], least_ratio=4).is_reached() is False
    assert Figure("memory", "MB", [51.0], [200.0]).is_reached() is None


def test_failover_is_as_fast_as_kafkas_within_tolerance():
    row = Figure("failover", "s", [2.0, 2.2, 9.0], [1.8], most_longer=0.5, digits=1)
    assert row.is_reached() is True
    slow = Figure("failover", "s", [2.4], [1.8], most_longer=0.5, digits=1)
    assert slow.is_reached() is False
    assert slow.row() == "| failover | 2.4 s | 1.8 | 0.75 (0.75 to 0.75) | + 0.5 s ✗ |"


def test_a_case_of_pairs_gives_rate_cpu_and_latency():
    wirebroker_runs = [Run(200.0, 5.0, 0.0, {"p99_us": 1500.0})]
    kafka_runs = [Run(100.0, 20.0, 0.0, {"p99_us": 3000.0})]
    rate, cpu, p99 = of_pairs(
        "RF 3", Pairs(wirebroker_runs, kafka_runs), unit="record", reach=(None, 2)
    )
    assert (rate.ratio().median, cpu.ratio().median, p99.ratio().median) == (2, 4, 2)
    assert (rate.is_reached(), cpu.is_reached()) == (None, True)
    assert (p99.ours, p99.unit) == ([1.5], "ms")


def test_earlier_measurements_stay_in_the_file(tmp_path: Path):
    first, again = Figure("a", "s", [1.0], [2.0]), Figure("a", "s", [3.0], [6.0])
    second = Figure("b", "s", [1.0], [2.0])
    write(tmp_path, {"date": "today"}, [first, second])
    write(tmp_path, {"date": "today"}, [again])
    assert read(tmp_path) == [again, second]
    assert table([again, second]) in (tmp_path / "cluster.md").read_text()
    assert read(tmp_path / "nothing") == []
