"""Growth benchmarks: slopes, rows, and stored results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from benchmarks.growth import growth, growth_cases
from benchmarks.growth.growth_report import Series, by_cost, read_json, slope, table, write_json
from benchmarks.load.growth_requests import Point, is_settled
from benchmarks.measurement.awake_cores import KEPT_AWAKE, MAY_SLEEP
from tests.support.brokers.brokers import RunningBroker

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker


def series(broker: str = "ours", cost: str = "produce", **attributes: object) -> Series:
    made = Series("partitions", broker, cost, "us", points={1: 2.0, 10: 20.0})
    for name, value in attributes.items():
        setattr(made, name, value)
    return made


class IdleBroker(RunningBroker):
    def __init__(self, _directory: Path) -> None:
        super().__init__("127.0.0.1:0")


def fails_at_ten(_broker: Broker, *, quick: bool) -> Iterator[Point]:
    assert quick
    yield Point("produce", "us", 1, 7.0)
    raise RuntimeError("load:\ntimed out")


def test_a_cost_that_grows_with_the_size_has_the_slope_one():
    assert slope({1: 2.0, 10: 20.0, 100: 200.0}) == pytest.approx(1.0)


def test_a_constant_cost_has_the_slope_zero():
    assert slope({1: 2.0, 1000: 2.0}) == pytest.approx(0.0)


def test_the_steepest_rise_counts_even_if_the_cost_falls_later():
    assert slope({1: 1.0, 10: 100.0, 100: 1.0}) == pytest.approx(2.0)


def test_a_single_point_has_no_slope():
    assert slope({7: 3.0}) == 0.0


def test_costs_that_still_fall_are_not_settled():
    assert not is_settled([80.0, 60.0, 50.0, 45.0])


def test_costs_are_settled_when_three_runs_gained_nothing_over_those_before():
    assert is_settled([80.0, 45.0, 46.0, 44.5, 47.0])


def test_three_runs_are_too_few_to_be_settled():
    assert not is_settled([45.0, 45.0, 45.0])


def test_the_brokers_rows_of_one_cost_stand_below_each_other():
    results = [series(), series(cost="fetch"), series("theirs"), series("theirs", "fetch")]
    rows = [row.split(" | ")[:2] for row in table(results).splitlines()[2:]]
    assert rows == [
        ["| produce (us)", "ours"],
        ["| produce (us)", "theirs"],
        ["| fetch (us)", "ours"],
        ["| fetch (us)", "theirs"],
    ]


def test_a_row_has_the_points_and_their_slope():
    assert table([series()]).splitlines()[-1] == (
        "| produce (us) | ours | 1 → 2.00, 10 → 20.00 | 1.00 |"
    )


def test_a_row_of_cases_that_are_no_sizes_has_no_slope():
    assert (
        table([series(is_checked=False)]).splitlines()[-1].endswith("| 1 → 2.00, 10 → 20.00 |  |")
    )


def test_failure_note_follows_the_measured_points():
    row = table([series(note="then failed: timed out")]).splitlines()[-1]
    assert row == "| produce (us) | ours | 1 → 2.00, 10 → 20.00, then failed: timed out | 1.00 |"


def test_broker_without_results_still_has_a_row():
    row = table([series(points={}, unit="", note="failed")]).splitlines()[-1]
    assert row == "| produce | ours | failed |  |"


def test_kafka_failure_is_noted_after_its_points(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setitem(growth_cases.KINDS, "partitions", fails_at_ten)
    (result,) = growth.measure("partitions", growth.THEIRS, IdleBroker, quick=True)
    assert result.points == {1: 7.0}
    assert result.note == "then failed: timed out"


def test_wirebroker_failure_aborts_the_benchmark(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(growth_cases.KINDS, "partitions", fails_at_ten)
    with pytest.raises(RuntimeError, match="timed out"):
        growth.measure("partitions", growth.OURS, IdleBroker, quick=True)


def test_only_wirebroker_must_grow_at_most_linearly():
    steep = {1: 1.0, 10: 100.0}
    assert growth.verdict([series(growth.THEIRS, points=steep)]) == 0
    assert growth.verdict([series(growth.OURS, points=steep)]) == 1
    assert growth.verdict([series(growth.OURS, points=steep, is_checked=False)]) == 0


def test_costs_keep_the_order_in_which_they_were_found():
    assert list(by_cost([series(cost="b"), series(cost="a"), series(cost="b")])) == ["b", "a"]


def test_results_are_read_as_they_were_written(tmp_path: Path):
    results = [series(), series("theirs", note="then failed"), series(is_checked=False)]
    write_json(tmp_path / "growth.json", results, KEPT_AWAKE)
    assert read_json(tmp_path / "growth.json", KEPT_AWAKE) == results


def test_without_a_file_there_are_no_earlier_results(tmp_path: Path):
    assert read_json(tmp_path / "growth.json", KEPT_AWAKE) == []


def test_results_of_cores_that_slept_are_not_mixed_with_those_of_awake_ones(tmp_path: Path):
    write_json(tmp_path / "growth.json", [series()], MAY_SLEEP)
    with pytest.raises(ValueError, match="may sleep, this run has cores: kept awake"):
        read_json(tmp_path / "growth.json", KEPT_AWAKE)
