"""A service process that does not stop shows where its threads are."""

from __future__ import annotations

import sys
from subprocess import TimeoutExpired
from typing import TYPE_CHECKING

import pytest

from tests.support.delivery import delivery_process
from tests.support.delivery.delivery_process import DeliveryProcess
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

_DEAF = """
import signal

def wait_without_end():
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("up", flush=True)
    while True:
        signal.pause()

wait_without_end()
"""


def test_the_stacks_of_a_process_that_does_not_stop_are_in_the_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery_process, "STOP_TIMEOUT_S", 1.0)
    # No core dump in the working directory.
    monkeypatch.chdir(tmp_path)
    process = DeliveryProcess("none:1", tmp_path / "one")
    process._command = [sys.executable, "-c", _DEAF]
    process.start()
    eventually(lambda: "up" in process.text())
    with pytest.raises(AssertionError, match="in wait_without_end") as raised:
        process.stop()
    assert isinstance(raised.value.__cause__, TimeoutExpired)
    process.stop()
