"""kafka_exporter, from PATH or built from its Go module, as a process that queries a broker."""

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
        ToolError: It is not on PATH, and no Go module proxy has its source.
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
        "GOFLAGS": "-modcacherw",  # lets `rm -r .venv` delete it
    }
    tools._run([go_command(), "install", MODULE], environment)


@contextlib.contextmanager
def exporting(bootstrap: str) -> Iterator[str]:
    port = free_port()
    page = f"http://127.0.0.1:{port}/metrics"
    process = subprocess.Popen(
        [
            program(),
            f"--kafka.server={bootstrap}",
            f"--web.listen-address=127.0.0.1:{port}",
            # Without it, 1.9.0 sometimes loses the last sample of a scrape.
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
    with urllib.request.urlopen(page, timeout=_START_S) as reply:
        text: str = reply.read().decode()
    return text
