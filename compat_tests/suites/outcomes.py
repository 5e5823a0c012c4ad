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
    return [outcome for outcome in outcomes if outcome.result == "failed"]


def totals(outcomes: Sequence[Outcome]) -> str:
    results = [outcome.result for outcome in outcomes]
    return ", ".join(f"{results.count(word)} {word}" for word in ("passed", "failed", "skipped"))


def from_junit(path: Path) -> Iterator[Outcome]:
    for case in ET.parse(path).iter("testcase"):
        children = {child.tag: child for child in case}
        problem = children.get("failure", children.get("error"))
        result = (
            "failed" if problem is not None else "skipped" if "skipped" in children else "passed"
        )
        message = "" if problem is None else problem.get("message", "")
        yield Outcome(case.get("name", ""), result, message)
