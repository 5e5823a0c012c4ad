"""Replacements for missing epoll, positioned reads and POSIX locks.

A child process hides them. Other differences of such systems, such as Windows' refusal to rename
open files, are not covered.
"""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.brokers.installed_broker import serving
from tests.support.harness.project_files import ROOT
from wirebroker.storage import system_calls

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="hides what Linux has")

_HIDE: list[str | Path] = [sys.executable, ROOT / "tests" / "support" / "other_systems" / "hide.py"]


def verb(*arguments: str, stdin_text: str = "") -> str:
    done = subprocess.run(
        [sys.executable, "-m", "wirebroker", *arguments],
        input=stdin_text,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return done.stdout


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_every_module_can_be_imported(system):
    subprocess.run([*_HIDE, system, "--import-all"], cwd=ROOT, check=True, timeout=60)


@pytest.mark.parametrize("system", ["macos", "windows"])
def test_broker_keeps_produced_records_over_a_restart(system, tmp_path):
    command = [*_HIDE, system, "-m", "wirebroker"]
    large = "x" * 300_000
    with serving(command, tmp_path) as (host, port):
        verb("produce", "-b", f"{host}:{port}", "things", stdin_text=f"one\ntwo\n{large}\n")
    with serving(command, tmp_path) as (host, port):
        read = verb("consume", "-b", f"{host}:{port}", "--from-beginning", "-n", "3", "things")
    assert sorted(read.split()) == sorted(["one", "two", large])


def test_positioned_io_emulated_by_seeking_equals_the_native_calls(tmp_path):
    with (tmp_path / "file").open("w+b", buffering=0) as file:
        number = file.fileno()
        assert system_calls._write(number, b"abcdef", 2) == 6
        assert system_calls._write_from(number, [b"01", b"23"], 0) == 2
        assert system_calls._read(number, 4, 1) == b"1abc"
        buffer = bytearray(9)
        assert system_calls._read_into(number, [memoryview(buffer)], 3) == 5
        assert bytes(buffer) == b"bcdef\0\0\0\0"
        with pytest.raises(OSError, match="not supported"):
            system_calls._read_into(number, [memoryview(buffer)], 0, 8)
