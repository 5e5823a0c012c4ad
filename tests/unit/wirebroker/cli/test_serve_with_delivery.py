"""`wirebroker serve --delivery`: the service starts with the broker and ends with it."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PATIENCE_S = 120.0


@contextmanager
def serving(folder: Path, *flags: str) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    log = folder / "log"
    words = ("serve", "--delivery", "--port", "0", "--data-dir", str(folder / "data"), *flags)
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "wirebroker", *words], stdout=output, stderr=output
        )
    try:
        yield process, log
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(60)


def test_the_service_runs_beside_the_broker_and_ends_before_it(tmp_path: Path) -> None:
    directory = f"wirebroker.delivery.directory={tmp_path / 'delivery'}"
    with serving(tmp_path, "--set", directory) as (process, log):
        eventually(lambda: "assigned" in log.read_text(), timeout_s=PATIENCE_S)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
        text = log.read_text()
        assert "delivery service ended" not in text
        assert text.index("revoked") < text.index("wirebroker: stopped")


def test_the_broker_continues_without_the_service(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    directory = f"wirebroker.delivery.directory={tmp_path / 'file'}"
    with serving(tmp_path, "--set", directory) as (process, log):
        eventually(lambda: "the broker continues" in log.read_text(), timeout_s=PATIENCE_S)
        assert "cannot be used" in log.read_text()
        assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0


def test_workers_are_refused(tmp_path: Path) -> None:
    with serving(tmp_path, "--workers", "2") as (process, log):
        assert process.wait(60) == 2
        assert "--delivery cannot be used with --workers" in log.read_text()
