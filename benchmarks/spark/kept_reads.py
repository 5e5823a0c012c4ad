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

    from benchmarks.spark.spark_reads import ReadWish


class KeptReads:
    """Reads in a file, which may not exist yet."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lines = list(self._read())

    def is_filled(self, wish: ReadWish) -> bool:
        steps = [each["kind"] for each in self._of(wish) if each["kind"] != "pair"]
        return steps[-1:] == ["filled"]

    def fill(self, wish: ReadWish) -> None:
        self._add(kind="filled", case=wish.case)

    def forget(self, wish: ReadWish) -> None:
        """Note that a topic is about to be deleted."""
        self._add(kind="emptied", case=wish.case)

    def add(self, wish: ReadWish, before: Read, after: Read, worker_mb: float) -> None:
        load = round(os.getloadavg()[0], 1)
        self._add(
            kind="pair",
            case=wish.case,
            before=before,
            after=after,
            worker_mb=worker_mb,
            load=load,
        )

    def pairs_of(self, wish: ReadWish) -> ReadPairs:
        found = [each for each in self._of(wish) if each["kind"] == "pair"]
        return ReadPairs(
            *(wish.size, wish.codec, wish.records),
            [Read(*each["before"]) for each in found],
            [Read(*each["after"]) for each in found],
            max((each["worker_mb"] for each in found), default=0.0),
            tuple(each["load"] for each in found),
        )

    def _of(self, wish: ReadWish) -> Iterator[dict[str, Any]]:
        return (each for each in self._lines if each["case"] == wish.case)

    def _read(self) -> Iterator[dict[str, Any]]:
        text = self._path.read_bytes() if self._path.exists() else b""
        # An interrupted run may leave an incomplete line.
        whole = text.rpartition(b"\n")[0]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                yield _checked(json.loads(line))
            except (ValueError, KeyError, TypeError) as error:
                raise SystemExit(f"{self._path}, line {number}: that is no read") from error

    def _add(self, **fields: Any) -> None:
        text = json.dumps(fields) + "\n"
        whole = self._path.read_bytes().rpartition(b"\n")[0] if self._path.exists() else b""
        begun = whole + b"\n" if whole else b""
        written = self._path.with_name(f"{self._path.name}.new")
        written.write_bytes(begun + text.encode())
        written.replace(self._path)
        self._lines.append(json.loads(text))


def _checked(line: dict[str, Any]) -> dict[str, Any]:
    wanted = {"kind", "case"}
    if line["kind"] == "pair":
        wanted |= {"before", "after", "worker_mb", "load"}
    if not wanted <= line.keys():
        raise KeyError(wanted)
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
