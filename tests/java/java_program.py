"""A Java program of this folder on Apache Kafka's jars, called through pipes."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.support.brokers import java_start
from tests.support.tools import java_programs


class JavaProgram:
    """A running program. Each reply has a status byte and sized fields.

    All programs are compiled together, once.

    Args:
        main_class: Its class.
    """

    def __init__(self, main_class: str) -> None:
        classes = java_programs.compiled("comparisons", Path(__file__).parent)
        self._process = subprocess.Popen(
            java_start.command("-Xmx256m", main_class, more_classes=classes),
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
