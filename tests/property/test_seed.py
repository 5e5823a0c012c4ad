"""Every process of a randomized test run uses the printed seed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

_ROOT = Path(__file__).resolve().parents[2]
_NOTES_ITS_SEEDS = """
from pathlib import Path

import pytest

def test_it(pytestconfig, worker_id):
    option = pytestconfig.option
    Path(__file__).with_name(worker_id).write_text(f"{option.seed} {option.hypothesis_seed}")
"""


def test_a_random_seed_is_the_same_in_every_process_and_printed(tmp_path: Path) -> None:
    printed = _run(tmp_path, "--seed", "random")
    used = {(tmp_path / worker).read_text(encoding="ascii") for worker in ("gw0", "gw1")}
    assert used == {f"{printed} {printed}"}


@pytest.mark.nightly
def test_a_seed_is_fixed_unless_one_is_given(tmp_path: Path) -> None:
    assert [_run(tmp_path), _run(tmp_path, "--seed", "7")] == [1_000, 7]


def _run(folder: Path, *options: str) -> int:
    """Run a test in two processes with our conftest.py, and return the seed in its header."""
    test = folder / "test_it.py"
    test.write_text(_NOTES_ITS_SEEDS, encoding="ascii")
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "conftest"]
    command += ["-p", "no:cacheprovider", "-n", "2", "--dist", "each", str(test), *options]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=True)
    (seed,) = re.findall(r"--seed (\d+)", done.stdout)
    return int(seed)
