"""README's table of clients shows the results of the tests that are marked `shows`."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients.__main__ import README, RECORD, RECORDING, TESTS, main, table, with_table
from tests.support.harness.project_files import ROOT

if TYPE_CHECKING:
    from pathlib import Path

# Three tests of clients: one passes, one fails, one fails in its setup.
TRIAL = """\
import pytest

@pytest.fixture
def broken():
    raise OSError("no broker")

@pytest.mark.shows("admin")
@pytest.mark.parametrize(("client", "way"), [("kafka-python", "way"), ("kcat", "way")])
def test_of_a_parameter(client, way):
    assert client == "kafka-python"

@pytest.mark.shows("transactions", "spark", "read_committed")
def test_of_a_fixture(broken):
    pass
"""


def pytest_run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *map(str, arguments)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def cells(record: dict[str, Any]) -> set[tuple[str, str, tuple[str, ...]]]:
    return {
        (client, feature, tuple(result["details"]))
        for client, entry in record.items()
        for feature, result in entry["features"].items()
    }


def recorded() -> dict[str, Any]:
    record: dict[str, Any] = json.loads(RECORD.read_text("utf-8"))
    return record


def test_readme_contains_printed_table(capsys):
    assert main([]) == 0
    assert f"\n\n{capsys.readouterr().out}\n" in README.read_text("utf-8")


def test_record_has_all_clients_and_features_of_test_marks(tmp_path):
    file = tmp_path / "cells.json"
    done = pytest_run(*TESTS, *RECORDING, file, "--collect-only")
    assert done.returncode == 0, done.stdout[-2000:]
    assert cells(json.loads(file.read_text("utf-8"))) == cells(recorded())


def test_all_recorded_tests_passed():
    for client, entry in recorded().items():
        for feature, result in entry["features"].items():
            assert result["passed"] > 0, (client, feature)
            assert result["failed"] == 0, (client, feature)


@pytest.mark.parametrize(
    "options",
    [
        pytest.param([], id="alone", marks=pytest.mark.nightly),
        pytest.param(["-n", "2"], id="distributed"),
    ],
)
def test_failures_are_recorded_and_other_results_kept(tmp_path, options):
    trial, file = tmp_path / "test_trial.py", tmp_path / "record.json"
    trial.write_text(TRIAL, "utf-8")
    earlier_result = {"passed": 3, "failed": 0, "details": []}
    before = {
        "kcat": {
            "version": "1",
            "features": {"consumer groups": earlier_result, "admin": earlier_result},
        }
    }
    file.write_text(json.dumps(before), "utf-8")
    assert pytest_run(trial, *RECORDING, file, *options).returncode == 1
    lines = table(json.loads(file.read_text("utf-8"))).splitlines()[2:]
    assert [line.split("|")[1] + line.split("|", 3)[3] for line in lines] == [
        " kafka-python  | | | | | | yes |",
        " kcat  consume | yes | | | | | 1 of 1 tests fail |",
        " Spark's Kafka connector  | | | | | 1 of 1 tests fail | |",
    ]


def test_new_table_replaces_old_table():
    old = table({})
    text = f"Before\n\n{old}\nAfter\n\n| client | else |\n"
    new = table(recorded())
    assert with_table(text, new) == text.replace(old, new)
