"""The log lines that any client can cause are limited, and have a date and time."""

from __future__ import annotations

import asyncio
import contextlib
import io
import logging
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.tools.waiting import PATIENCE_S, eventually
from wirebroker.base import log_bound
from wirebroker.base.logs import BoundedHandler
from wirebroker.console.records.downloads import CutDownloadError
from wirebroker.console.web.server import limit_client_lines, limit_line

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

REFUSALS = 1000
# A minute may end in between; a notice and a summary are added to each.
MOST_LINES = 2 * (log_bound._MOST_ALIKE + 2)
LOGGERS = ("uvicorn.error", "asyncio")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    """Return what the libraries' loggers write while their lines are limited."""
    written = io.StringIO()
    handler = BoundedHandler(written)
    loggers = [logging.getLogger(name) for name in LOGGERS]
    limit_client_lines()
    for log in loggers:
        log.addHandler(handler)
    yield written
    for log in loggers:
        log.removeHandler(handler)
        log.removeFilter(limit_line)
    handler.close()


@contextlib.contextmanager
def running_console(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[bytes], Any, Path]]:
    """Run a console; yield its process, address and log."""
    port_file, log = tmp_path / "port", tmp_path / "log"
    command = [sys.executable, "-m", "wirebroker", "console", "--port", "0"]
    command += ["--cluster", "dev=127.0.0.1:9", "--port-file", str(port_file)]
    command += ["--audit-log", str(tmp_path / "audit.log")]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output)
    try:
        eventually(lambda: port_file.exists() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        yield process, ("127.0.0.1", int(port_file.read_text())), log
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0


@pytest.mark.parametrize("name", LOGGERS)
def test_lines_that_clients_cause_are_limited(stream, name):
    log = logging.getLogger(name)
    for _ in range(REFUSALS):
        log.warning("Invalid HTTP request received.")
    for _ in range(REFUSALS):
        log.error("a bug")
    lines = stream.getvalue().splitlines()
    assert 0 < sum("Invalid" in line for line in lines) <= MOST_LINES
    assert sum("a bug" in line for line in lines) == REFUSALS


def test_ended_requests_are_logged_without_tracebacks(stream):
    for error in (asyncio.CancelledError(), CutDownloadError("a download of x"), OSError("a bug")):
        logging.getLogger("uvicorn.error").error("Exception in ASGI application", exc_info=error)
    assert stream.getvalue().splitlines() == [
        "a download of x",
        "Exception in ASGI application",
        "OSError: a bug",
    ]


def test_a_console_with_an_open_page_stops_at_once_and_quietly(tmp_path):
    with (
        running_console(tmp_path) as (process, address, log),
        socket.create_connection(address, timeout=PATIENCE_S) as client,
    ):
        client.sendall(b"GET /c/dev/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        received = b""
        while b"event: connected" not in received:
            received += client.recv(1000)
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert "Cancel" not in log.read_text()
    assert "Traceback" not in log.read_text()


def test_a_console_logs_few_malformed_requests_each_with_its_time(tmp_path):
    with running_console(tmp_path) as (_, address, log):
        for _ in range(200):
            with socket.create_connection(address, timeout=PATIENCE_S) as client:
                client.sendall(b"nonsense\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 400")
        lines = log.read_text().splitlines()
    assert any("Invalid HTTP request" in line for line in lines)
    assert any("are only counted" in line for line in lines)
    assert len(lines) <= MOST_LINES
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARNING", line), line
