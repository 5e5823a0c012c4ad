"""The report of .ci/run on failed tests, with a fake `make`."""

import json
import os
import shutil
import stat
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]

# Fails a target as often as its file says, and records failed tests as pytest does.
MAKE = """\
#!/usr/bin/env bash
echo "make $*" >> made.txt
folder=.; [[ $1 == test-compiled ]] && folder=.venv/compiled
left=$(cat "fails-$1" 2> /dev/null || echo 0)
[[ $left -gt 0 ]] || exit 0
echo $((left - 1)) > "fails-$1"
mkdir -p "$folder"/.pytest_cache/v/{cache,wirebroker}
cp ended "$folder/.pytest_cache/v/wirebroker/ended"
cp failed "$folder/.pytest_cache/v/cache/lastfailed"
exit 2
"""


def of_files(count: int, *, tests: int = 1) -> list[str]:
    return [f"tests/test_{file}.py::test_{test}" for file in range(count) for test in range(tests)]


def run(
    tmp_path: Path,
    *,
    fails: dict[str, int],
    failed: Sequence[str] = of_files(1),
    exit_status: int = 1,
) -> tuple[int, list[str], str]:
    """Run .ci/run with `fails` as the failures per target; return status and targets."""
    (tmp_path / ".ci").mkdir()
    shutil.copy(ROOT / ".ci/run", tmp_path / ".ci/run")
    (tmp_path / "bin").mkdir()
    make = tmp_path / "bin/make"
    make.write_text(MAKE)
    make.chmod(make.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "failed").write_text(json.dumps(dict.fromkeys(failed, True), indent=2))
    (tmp_path / "ended").write_text(str(exit_status))
    for target, count in fails.items():
        (tmp_path / f"fails-{target}").write_text(str(count))
    environment = {**os.environ, "PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    command = ["bash", ".ci/run"]
    done = subprocess.run(
        command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    made = (tmp_path / "made.txt").read_text().splitlines()
    # In the background, at any time.
    made.remove("make tools")
    return done.returncode, made, done.stdout


def test_every_target_runs_once_if_nothing_fails(tmp_path):
    status, made, printed = run(tmp_path, fails={})
    assert status == 0
    parts = ["lint", "compiled", "types", "test-compiled", "test-all"]
    assert made[1] == "make first-run"
    assert sorted(made[2:]) == sorted(f"make {part}" for part in ["collect", *parts])
    assert made.index("make collect") < made.index("make test-all")
    assert printed.splitlines()[-1].startswith("== passed in")


@pytest.mark.parametrize("part", ["test-all", "test-compiled"])
def test_few_failed_tests_are_retried_and_named(tmp_path, part):
    failed = of_files(5)
    status, made, printed = run(tmp_path, fails={part: 1}, failed=failed)
    assert status == 0
    assert made[-1] == f"make {part} {'WORKERS' if part == 'test-all' else 'CORES'}=0"
    assert [name for name in failed if name in printed] == failed


def test_many_failed_tests_of_one_file_are_retried(tmp_path):
    """A failed fixture makes all tests of its file fail."""
    failed = [*of_files(5, tests=8), "tests/test_1.py::TestIt::test_it[a::b-/c:d]"]
    assert run(tmp_path, fails={"test-all": 1}, failed=failed)[0] == 0


@pytest.mark.parametrize("part", ["test-all", "test-compiled"])
def test_tests_that_fail_twice_fail_the_run(tmp_path, part):
    assert run(tmp_path, fails={part: 2})[0] == 1


@pytest.mark.parametrize(("files", "ended"), [(6, 1), (1, 2), (1, 3)])
def test_failures_in_many_files_and_aborted_runs_are_not_retried(tmp_path, files, ended):
    status, made, _ = run(
        tmp_path, fails={"test-all": 1}, failed=of_files(files), exit_status=ended
    )
    assert status == 1
    assert [line for line in made if "test-all" in line] == ["make test-all"]


@pytest.mark.parametrize("part", ["lint", "compiled", "types"])
def test_failed_target_without_tests_is_not_retried(tmp_path, part):
    status, _, printed = run(tmp_path, fails={part: 1, "test-all": 1})
    assert status == 1
    assert f"== {part}: FAILED" in printed
