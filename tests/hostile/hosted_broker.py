"""A broker in its own process, whose memory and log lines can be measured."""

from __future__ import annotations

import re
import signal
import socket
import struct
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Mapping

FRAME_DEADLINE_MS = 2000
MEMORY_BUDGET_BYTES = 32 << 20

# Generous timeout for the broker's reactions.
PATIENCE_S = 20.0


class HostedBroker:
    """A running broker, seen from outside.

    Attributes:
        address: Host and port of its listener.
    """

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        log_level: str = "debug",
    ) -> None:
        """Start a broker; `settings` override the limits. At debug no log line is suppressed."""
        # The log's size before each connection, by local address, because the system reuses ports.
        self._log_before: dict[str, int] = {}
        port_file = directory / "port"
        self._log = directory / "log"
        limits = {
            "wirebroker.frame.deadline.ms": FRAME_DEADLINE_MS,
            "wirebroker.request.memory.bytes": MEMORY_BUDGET_BYTES,
        }
        command = [sys.executable, "-m", "wirebroker", "serve", "--port", "0"]
        command += ["--port-file", str(port_file), "--data-dir", str(directory / "data")]
        command += ["--log-level", log_level]
        for name, value in {**limits, **(settings or {})}.items():
            command += ["--set", f"{name}={value}"]
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(command, stdout=log, stderr=log)
        self._wait_until(port_file.exists)
        self.address = ("127.0.0.1", int(port_file.read_text(encoding="ascii")))

    def connect(self) -> socket.socket:
        size = self._log.stat().st_size
        sock = socket.create_connection(self.address, timeout=PATIENCE_S)
        host, port = sock.getsockname()
        self._log_before[f"{host}:{port}"] = size
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def lines_about(self, text: str) -> list[str]:
        """Return the log lines above debug that contain a text; wait for the first.

        For the address of a connection, only lines since it was made.
        """
        before = self._log_before.get(text, 0)
        pattern = re.compile(re.escape(text) + r"\b")

        def matching_lines() -> list[str]:
            log = self._log.read_bytes()[before:].decode(errors="replace")
            lines = (line for line in log.splitlines() if " DEBUG " not in line)
            return [line for line in lines if pattern.search(line)]

        self._wait_until(matching_lines)
        return matching_lines()

    def begin_memory_watch(self) -> int:
        """Reset the process's peak and return its resident bytes."""
        Path(f"/proc/{self._process.pid}/clear_refs").write_text("5", encoding="ascii")
        return self._status_bytes("VmRSS")

    def until_memory_is(self, most_bytes: int) -> None:
        self._wait_until(lambda: self._status_bytes("VmRSS") <= most_bytes)

    def peak_memory_bytes(self) -> int:
        return self._status_bytes("VmHWM")

    def stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        assert self._process.wait(30) == 0, self._log.read_text(encoding="utf-8", errors="replace")

    def _status_bytes(self, name: str) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text(encoding="ascii")
        return int(status.split(f"{name}:")[1].split()[0]) * 1024

    def _wait_until(self, condition) -> None:
        def is_true() -> bool:
            if condition():
                return True
            assert self._process.poll() is None, "the broker has died: " + self._log.read_text(
                encoding="utf-8", errors="replace"
            )
            return False

        eventually(is_true, timeout_s=PATIENCE_S, poll_s=0.005)


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


def receive_answer(sock: socket.socket) -> bytes | None:
    """Return one response without its length, or None if the connection is closed."""
    data = b""
    try:
        while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
            piece = sock.recv(65536)
            if not piece:
                return None
            data += piece
    except ConnectionError:
        return None
    return data[4:]
