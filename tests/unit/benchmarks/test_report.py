"""Stored data of the benchmark table for later runs, and its facts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from benchmarks import report
from benchmarks.measurement.awake_cores import KEPT_AWAKE, MAY_SLEEP
from benchmarks.measurement.pairs import Pairs, Run

if TYPE_CHECKING:
    from pathlib import Path

RESULTS = {"100 B": Pairs([Run(2.0, 1.0, 0.0, {"p99_us": 7.0})], [Run(1.0, 3.0, 0.1, {})], 2)}


def test_results_are_read_as_they_were_written(tmp_path: Path):
    report.write(tmp_path, {"cores": KEPT_AWAKE}, RESULTS, [])
    assert report.read_json(tmp_path / "runs.json", KEPT_AWAKE) == RESULTS


def test_without_a_file_there_are_no_earlier_results(tmp_path: Path):
    assert report.read_json(tmp_path / "runs.json", KEPT_AWAKE) == {}


def test_results_of_awake_cores_are_not_mixed_with_those_that_sleep(tmp_path: Path):
    report.write(tmp_path, {"cores": KEPT_AWAKE}, RESULTS, [])
    with pytest.raises(ValueError, match="kept awake, this run has cores: may sleep"):
        report.read_json(tmp_path / "runs.json", MAY_SLEEP)


def test_results_that_say_nothing_of_cores_are_from_before_they_were_kept_awake(tmp_path: Path):
    (tmp_path / "runs.json").write_text(json.dumps({"facts": {}, "cases": {}}))
    assert report.read_json(tmp_path / "runs.json", MAY_SLEEP) == {}
    with pytest.raises(ValueError, match="may sleep, this run has cores: kept awake"):
        report.read_json(tmp_path / "runs.json", KEPT_AWAKE)


def test_the_title_says_whether_cores_were_kept_awake():
    assert report.title({"pairs": "9", "cores": KEPT_AWAKE}) == "pairs: 9, cores: kept awake"
