"""The log lines that any client can cause are limited, and have a date and time."""

from __future__ import annotations

import io
import logging
import re
import socket
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from tests.support.tools.waiting import PATIENCE_S, eventually
from wirebroker.base import log_bound
from wirebroker.base.logs import BoundedHandler
from wirebroker.console.web.server import limit_client_lines, limit_line

if TYPE_CHECKING:
    from collections.abc import Iterator

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


def test_a_console_logs_few_malformed_requests_each_with_its_time(tmp_path):
    port_file, log = tmp_path / "port", tmp_path / "log"
    command = [sys.executable, "-m", "wirebroker", "console", "--port", "0"]
    command += ["--port-file", str(port_file), "--audit-log", str(tmp_path / "audit.log")]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=output)
    try:
        eventually(lambda: port_file.exists() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        address = ("127.0.0.1", int(port_file.read_text()))
        for _ in range(200):
            with socket.create_connection(address, timeout=PATIENCE_S) as client:
                client.sendall(b"nonsense\r\n\r\n")
                assert client.recv(100).startswith(b"HTTP/1.1 400")
        lines = log.read_text().splitlines()
    finally:
        process.terminate()
        assert process.wait(PATIENCE_S) == 0
    assert any("Invalid HTTP request" in line for line in lines)
    assert any("are only counted" in line for line in lines)
    assert len(lines) <= MOST_LINES
    for line in lines:
        assert re.match(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} WARNING", line), line
