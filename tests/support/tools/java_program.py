"""A one-file Java program, compiled with Apache Kafka's jars and called through pipes."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

from tests.support.tools import tools

if TYPE_CHECKING:
    from pathlib import Path


class JavaProgram:
    """A running program. Each reply has a status byte and sized fields."""

    def __init__(self, source: Path, classes: Path) -> None:
        """Compile a source file into an empty folder and run its class."""
        jars = tools.kafka_class_path()
        subprocess.run(
            [*tools.javac_command(), "-cp", jars, "-d", str(classes), str(source)],
            check=True,
            capture_output=True,
        )
        class_path = os.pathsep.join([str(classes), jars])
        self._process = subprocess.Popen(
            [tools.java_command(), "-Xmx256m", "-cp", class_path, source.stem],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )

    def ask(self, question: bytes, field_count: int) -> tuple[int, list[bytes]]:
        assert self._process.stdin is not None
        self._process.stdin.write(question)
        self._process.stdin.flush()
        status = self._read(1)[0]
        return status, [self._read(int.from_bytes(self._read(4))) for _ in range(field_count)]

    def close(self) -> None:
        self._process.communicate(timeout=30)

    def _read(self, length: int) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(length)
        assert len(data) == length, "Java has ended"
        return data
