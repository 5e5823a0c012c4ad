"""Ending a run of nightly steps ends the child processes of the current step."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.project_files import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

# A step with a child that ignores Ctrl-C and holds the pipe open while it lives.
_CHILD = """
import signal, sys
signal.signal(signal.SIGINT, signal.SIG_IGN)
with open(sys.argv[1], "w") as pipe:
    pipe.write("begun\\n")
    pipe.flush()
    signal.pause()
"""
_STEP = f"""
import pathlib, subprocess, sys
folder = pathlib.Path(sys.argv[-1])
try:
    subprocess.run([sys.executable, "-c", {_CHILD!r}, str(folder / "pipe")])
except KeyboardInterrupt:
    (folder / "cleaned").write_text("up")
"""
_NIGHTLY = """
import signal, sys
from tests.nightly import __main__ as nightly
from tests.nightly.step import Step
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # beneath nohup it is ignored
step, folder = sys.argv[1:]
command = "timeit", "-n", "1", "-r", "1", f"import sys; sys.argv.append({folder!r}); exec({step!r})"
nightly.main(["--results", folder], (Step("first", command, 1, "waits"),))
"""
_IMPATIENT = """
import pathlib, sys
from tests.support.harness.step_process import ended_by_signals, run_step
with ended_by_signals():
    run_step([sys.executable, "-c", *sys.argv[1:]], pathlib.Path(), sys.stdout, patience_s=0.1)
"""


@pytest.fixture
def pipe(tmp_path: Path) -> Path:
    os.mkfifo(tmp_path / "pipe")
    return tmp_path / "pipe"


@pytest.fixture
def run(tmp_path: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    processes: list[subprocess.Popen[bytes]] = []
    yield processes
    for process in processes:
        process.kill()
        process.wait()


def begin(program: str, *arguments: str) -> subprocess.Popen[bytes]:
    shell = ("sh", "-c", 'trap "" INT; exec "$@"', "sh")
    return subprocess.Popen([*shell, sys.executable, "-c", program, *arguments], cwd=ROOT)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_terminated_run_kills_its_step_and_its_children(
    tmp_path: Path, pipe: Path, run: list[subprocess.Popen[bytes]], number: signal.Signals
):
    run.append(begin(_NIGHTLY, _STEP, str(tmp_path)))
    with pipe.open(encoding="ascii") as child:
        assert child.readline() == "begun\n"
        run[0].send_signal(number)
        assert run[0].wait(60) == 128 + number
        assert child.read() == ""
    assert (tmp_path / "cleaned").read_text() == "up"
    # It counts as a step that has not run.
    assert not (tmp_path / "first.json").exists()


def test_step_that_ignores_sigterm_is_killed(pipe: Path, run: list[subprocess.Popen[bytes]]):
    run.append(begin(_IMPATIENT, _CHILD, str(pipe)))
    with pipe.open(encoding="ascii") as child:
        assert child.readline() == "begun\n"
        run[0].terminate()
        assert run[0].wait(60) == 128 + signal.SIGTERM
        assert child.read() == ""
