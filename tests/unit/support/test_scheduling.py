"""Test units are scheduled longest first, with separate workers for heavy ones."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.harness.scheduling import choose, unit_of

_ROOT = Path(__file__).resolve().parents[3]
_NOTES_ITS_WORKER = """
from pathlib import Path

import pytest

@pytest.mark.parametrize("number", range(3))
def test_it(worker_id, number):
    with Path(__file__).with_suffix(".log").open("a") as log:
        log.write(worker_id + "\\n")
"""


@pytest.mark.parametrize(
    ("is_for_cores", "first"), [(True, "tests/a.py"), (False, "compat_tests/b.py")]
)
def test_a_worker_begins_with_the_longest_of_its_kind(is_for_cores, first):
    seconds = {"tests/a.py": 5, "tests/b.py": 4, "compat_tests/a.py": 50, "compat_tests/b.py": 60}
    assert choose(seconds, seconds, is_for_cores=is_for_cores) == first


def test_worker_without_units_of_its_kind_takes_the_longest_other():
    seconds = {"compat_tests/a.py": 50, "compat_tests/b.py": 60}
    assert choose(seconds, seconds, is_for_cores=True) == "compat_tests/b.py"


def test_a_file_is_a_unit_unless_its_tests_share_nothing_or_files_share_much():
    assert unit_of("tests/a.py::test_it[a::b]") == "tests/a.py"
    apart = "compat_tests/faults/test_kills.py::test_it[x]"
    assert unit_of(apart) == apart
    assert unit_of("spark_it/connector/test_batch.py::test_it") == unit_of(
        "spark_it/connector/test_stream.py::test_it"
    )


@pytest.mark.nightly
def test_a_file_runs_in_one_process_and_the_next_run_knows_what_it_takes(tmp_path):
    for name in ("test_a.py", "test_b.py", "test_c.py"):
        (tmp_path / name).write_text(_NOTES_ITS_WORKER, encoding="ascii")
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "conftest", "-n", "2"]
    command += ["-o", f"cache_dir={tmp_path / 'cache'}", str(tmp_path)]

    def run() -> str:
        done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
        return done.stdout

    assert "the last run" not in run()
    for name in ("test_a.log", "test_b.log", "test_c.log"):
        workers = (tmp_path / name).read_text(encoding="ascii").split()
        assert len(workers) == 3
        assert len(set(workers)) == 1
    assert re.search(r"^the last run of this took \d+ min \d+ s$", run(), re.MULTILINE)
