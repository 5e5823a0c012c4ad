"""Apache Kafka's command-line tools, all in one Java process (java/Scripts.java)."""

from __future__ import annotations

import base64
import contextlib
import subprocess
import threading
from typing import TYPE_CHECKING

from tests.support.brokers import java_start
from tests.support.cli.script_transcripts import Answer
from tests.support.tools import java_programs, tools

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_SOURCES = tools.PROJECT / "compat_tests" / "support" / "java"


class JavaTools:
    """The process; a start takes longer than most of the tools do."""

    def __init__(self) -> None:
        self._process = _started()

    def run(
        self,
        tool: str,
        arguments: Sequence[str],
        text: str | bytes = "",
        *,
        timeout_s: float | None = None,
    ) -> Answer:
        """Run a tool.

        Args:
            tool: Its Java class.
            arguments: Its arguments.
            text: What it reads from its standard input.
            timeout_s: If it takes longer, the process is killed, and the status is negative.
        """
        assert self._process.stdin
        assert self._process.stdout
        fields = [tool, text, *arguments]
        encoded = [field if isinstance(field, bytes) else field.encode() for field in fields]
        line = " ".join(f".{base64.b64encode(field_bytes).decode()}" for field_bytes in encoded)
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        with _killing_after(self._process, timeout_s):
            response = self._process.stdout.readline().decode().split()
        if not response:  # the argument parser has ended the process without output
            status = self._process.wait()
            self._process.communicate()
            self._process = _started()
            return Answer(status, "", "")
        status_text, out, err = response
        return Answer(
            int(status_text),
            base64.b64decode(out[1:]).decode(errors="replace"),
            base64.b64decode(err[1:]).decode(),
        )

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()


@contextlib.contextmanager
def _killing_after(process: subprocess.Popen[bytes], timeout_s: float | None) -> Iterator[None]:
    if timeout_s is None:
        yield
        return
    timer = threading.Timer(timeout_s, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _started() -> subprocess.Popen[bytes]:
    classes = java_programs.compiled("scripts", _SOURCES)
    command = java_start.command("-Xmx256m", "Scripts", more_classes=classes)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)
