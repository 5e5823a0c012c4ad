"""kafka_exporter, from PATH or built of its Go module, as a process that asks a broker."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import urllib.request
from functools import cache
from typing import TYPE_CHECKING

from compat_tests.support.tools_go import go_command
from tests.support.tools import tools
from tests.support.tools.ports import free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MODULE = "github.com/danielqsj/kafka_exporter@v1.9.0"
_START_S = 60.0


@cache
def program() -> str:
    """Return the path of the program.

    Raises:
        ToolError: It is not on PATH, and no proxy of Go modules gives its source.
    """
    on_path = shutil.which("kafka_exporter")
    if on_path:
        return on_path
    return str(tools._installed("kafka-exporter-1.9.0", _install) / "kafka_exporter")


def _install(folder: Path) -> None:
    environment = {
        "GOBIN": str(folder),
        "GOMODCACHE": str(tools.TOOLS / "go-modules"),
        "GOCACHE": str(tools.TOOLS / "go-cache"),
        "GOFLAGS": "-modcacherw",  # so that `rm -r .venv` can undo it
    }
    tools._run([go_command(), "install", MODULE], environment)


@contextlib.contextmanager
def exporting(bootstrap: str) -> Iterator[str]:
    """Run it beside a broker; gives the address of its page."""
    port = free_port()
    page = f"http://127.0.0.1:{port}/metrics"
    process = subprocess.Popen(
        [
            program(),
            f"--kafka.server={bootstrap}",
            f"--web.listen-address=127.0.0.1:{port}",
            # Without, 1.9.0 copies a scrape before its last sample is in, and at times loses it.
            "--concurrent.enable",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )

    def answers() -> bool:
        assert process.poll() is None, "kafka_exporter has ended"
        try:
            return bool(read(page))
        except OSError:
            return False

    try:
        eventually(answers, timeout_s=_START_S)
        yield page
    finally:
        process.terminate()
        process.wait(_START_S)


def read(page: str) -> str:
    """Return a page of metrics."""
    with urllib.request.urlopen(page, timeout=_START_S) as reply:
        text: str = reply.read().decode()
    return text
