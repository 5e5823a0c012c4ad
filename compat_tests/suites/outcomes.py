"""The outcomes of a suite's tests."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path


class Outcome(NamedTuple):
    """One test's outcome: "passed", "failed" or "skipped"."""

    test: str
    result: str
    why: str = ""


def failed(outcomes: Sequence[Outcome]) -> list[Outcome]:
    return [one for one in outcomes if one.result == "failed"]


def totals(outcomes: Sequence[Outcome]) -> str:
    results = [one.result for one in outcomes]
    return ", ".join(f"{results.count(word)} {word}" for word in ("passed", "failed", "skipped"))


def from_junit(path: Path) -> Iterator[Outcome]:
    for case in ET.parse(path).iter("testcase"):
        parts = {part.tag: part for part in case}
        trouble = parts.get("failure", parts.get("error"))
        result = "failed" if trouble is not None else "skipped" if "skipped" in parts else "passed"
        why = "" if trouble is None else trouble.get("message", "")
        yield Outcome(case.get("name", ""), result, why)
