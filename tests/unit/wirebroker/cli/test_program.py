"""The process `wirebroker`: remains after its end."""

import subprocess
import sys
from pathlib import Path

import pytest

_MAIN = "import sys; from wirebroker.cli.program import main; sys.argv[0] = 'wirebroker'; main()"


def run(code, *arguments, **options):
    command = [sys.executable, "-c", code, *arguments]
    return subprocess.run(command, timeout=60, check=False, text=True, **options)


def test_exit_status_is_that_of_the_verb():
    assert run(_MAIN, "nonsense", stderr=subprocess.DEVNULL).returncode == 2
    assert run(_MAIN, "--version", stdout=subprocess.DEVNULL).returncode == 0


@pytest.mark.parametrize(
    "also", ["", "threading.Thread(target=threading.Event().wait, args=(0.05,)).start();"]
)
def test_atexit_functions_run_with_and_without_threads(also):
    code = f"import atexit, threading; atexit.register(print, 'bye'); {also}{_MAIN}"
    done = run(code, "--version", capture_output=True)
    assert done.stdout.splitlines()[1:] == ["bye"]
    assert done.returncode == 0


def test_exit_status_is_correct_with_closed_output():
    for status, verb in ((0, "--version"), (2, "nonsense")):
        shell = ["sh", "-c", 'exec "$0" "$@" >&- 2>&-', sys.executable, "-c", _MAIN, verb]
        assert subprocess.run(shell, timeout=60, check=False).returncode == status


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_unwritable_output_is_a_failure():
    with Path("/dev/full").open("w") as full:
        assert run(_MAIN, "--version", stdout=full, stderr=subprocess.DEVNULL).returncode
