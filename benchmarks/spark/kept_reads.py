"""Measured reads, kept in a file between runs of a resumable benchmark.

It has one JSON line for each completed step, so a run may be interrupted at any time:

    {"kind": "filled", "case": "100 B, none, 20000000"}          or "emptied": its topic is gone
    {"kind": "pair", "case": …, "before": [s, cpu_s, broker_cpu_s], "after": […],
     "worker_mb": 155.0, "load": 3.2}
"""

from __future__ import annotations

import json
import os
import time
from typing import TYPE_CHECKING, Any

from benchmarks.spark.spark_reads import Read, ReadPairs

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from benchmarks.spark.spark_reads import ReadCase


class StoredReads:
    """Reads in a file, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = list(self._read())

    def is_filled(self, read_case: ReadCase) -> bool:
        steps = [line["kind"] for line in self._of(read_case) if line["kind"] != "pair"]
        return steps[-1:] == ["filled"]

    def fill(self, read_case: ReadCase) -> None:
        self._add(kind="filled", case=read_case.case)

    def forget(self, read_case: ReadCase) -> None:
        self._add(kind="emptied", case=read_case.case)

    def add(self, read_case: ReadCase, before: Read, after: Read, worker_mb: float) -> None:
        load = round(os.getloadavg()[0], 1)
        self._add(
            kind="pair",
            case=read_case.case,
            before=before,
            after=after,
            worker_mb=worker_mb,
            load=load,
        )

    def pairs_of(self, read_case: ReadCase) -> ReadPairs:
        pairs = [line for line in self._of(read_case) if line["kind"] == "pair"]
        return ReadPairs(
            *(read_case.size, read_case.codec, read_case.records),
            [Read(*line["before"]) for line in pairs],
            [Read(*line["after"]) for line in pairs],
            max((line["worker_mb"] for line in pairs), default=0.0),
            tuple(line["load"] for line in pairs),
        )

    def _of(self, read_case: ReadCase) -> Iterator[dict[str, Any]]:
        return (line for line in self._lines if line["case"] == read_case.case)

    def _read(self) -> Iterator[dict[str, Any]]:
        text = self._path.read_bytes() if self._path.exists() else b""
        # An interrupted run may leave an incomplete line.
        complete_lines = text.rpartition(b"\n")[0]
        for number, line in enumerate(complete_lines.splitlines(), 1):
            try:
                yield _checked(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{self._path}, line {number}: not a read") from error

    def _add(self, **fields: Any) -> None:
        text = json.dumps(fields) + "\n"
        complete_lines = (
            self._path.read_bytes().rpartition(b"\n")[0] if self._path.exists() else b""
        )
        previous = complete_lines + b"\n" if complete_lines else b""
        written = self._path.with_name(f"{self._path.name}.new")
        written.write_bytes(previous + text.encode())
        written.replace(self._path)
        self._lines.append(json.loads(text))


def _checked(line: dict[str, Any]) -> dict[str, Any]:
    required = {"kind", "case"}
    if line["kind"] == "pair":
        required |= {"before", "after", "worker_mb", "load"}
    if not required <= line.keys():
        raise KeyError(required)
    return line


class Pace:
    """Time limit of a run, in minutes, if any."""

    def __init__(self, minutes: float | None) -> None:
        self._left_s = None if minutes is None else minutes * 60
        self._began = time.monotonic()
        self._longest_s: dict[str, float] = {}
        self._is_begun = False

    def allows(self, kind: str, guess_s: float) -> bool:
        """Return whether a step can end in time, by the longest of its kind or `guess_s`.

        The first step is always allowed.
        """
        if not self._is_begun or self._left_s is None:
            self._is_begun = True
            return True
        takes_s = self._longest_s.get(kind, guess_s)
        return time.monotonic() - self._began + takes_s <= self._left_s

    def note(self, kind: str, began: float) -> None:
        took_s = time.monotonic() - began
        self._longest_s[kind] = max(took_s, self._longest_s.get(kind, 0.0))
