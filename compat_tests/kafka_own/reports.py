"""The outcome of each test of a class, from JUnit's reports and two lists in this folder.

`outside.txt` names tests that fail with any released broker in a separate process, and
`known_failures.txt` those that wirebroker does not pass yet; each with its reason.
"""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from functools import cache
from pathlib import Path
from typing import Final

from compat_tests.suites.outcomes import Outcome

_FOLDER: Final = Path(__file__).parent
# A test that reads a field of the broker object gets an exception, from java/Seen.java (also inside
# a wait loop) or because it cannot be cast to Kafka's class.
_ABORTED: Final = "TestAbortedException: "
_CAST: Final = re.compile(r"Proxy\d+ cannot be cast to class kafka\.")
# A finished test in the test feed, with the stack trace below it.
_FEED: Final = re.compile(
    r"^JUnit Jupiter > \w+ > (?P<method>\w+)\(.*?\) > .* :: (?P<state>SUCCESSFUL|FAILED|ABORTED)$"
    r"(?P<text>(?:\n(?!JUnit ).*)*)",
    re.MULTILINE,
)
_MOST_WORDS: Final = 220


@cache
def reasons(name: str) -> dict[str, str]:
    lines = (_FOLDER / name).read_text("utf-8").splitlines()
    rows = (line.partition("\t") for line in lines if line and not line.startswith("#"))
    return {test: reason for test, _, reason in rows}


def outcomes_in(class_name: str, folder: Path) -> list[Outcome]:
    simple = class_name.rpartition(".")[2]
    cases = [case for path in folder.glob("TEST-*.xml") for case in ET.parse(path).iter("testcase")]
    return [_outcome(f"{simple}.{_method(case)}", case) for case in cases]


def _method(case: ET.Element) -> str:
    return case.get("name", "").partition("(")[0]


def _outcome(test: str, case: ET.Element) -> Outcome:
    children = {child.tag: child for child in case}
    if "skipped" in children:
        return Outcome(test, "skipped", _words(children["skipped"]))
    problem = children.get("failure", children.get("error"))
    if problem is None:
        return Outcome(test, "passed")
    text = f"{problem.get('message') or ''} {problem.text or ''}"
    return _outcome_of_problem(test, text, _words(problem))


def _outcome_of_problem(test: str, text: str, words: str) -> Outcome:
    if _ABORTED in text:
        return Outcome(test, "skipped", _shortened(text.partition(_ABORTED)[2]))
    if _CAST.search(text):
        return Outcome(test, "skipped", "internals: a cast")
    if test in reasons("outside.txt"):
        return Outcome(test, "skipped", f"outside: {reasons('outside.txt')[test]}")
    return Outcome(test, "failed", words)


def outcomes_in_feed(class_name: str, feed: str) -> list[Outcome]:
    """Return the outcomes in the output of an aborted run, which has no report.

    The last outcome is a failure of the class itself.
    """
    simple = class_name.rpartition(".")[2]
    outcomes: list[Outcome] = []
    for entry in _FEED.finditer(feed):
        test, text = f"{simple}.{entry['method']}", entry["text"]
        match entry["state"]:
            case "SUCCESSFUL":
                outcomes.append(Outcome(test, "passed"))
            case "FAILED":
                outcomes.append(_outcome_of_problem(test, text, _shortened(text)))
            case _:
                outcomes.append(Outcome(test, "skipped", _shortened(text)))
    why = f"the run was aborted after {len(outcomes)} tests, or no method matches"
    return [*outcomes, Outcome(simple, "failed", why)]


def _words(part: ET.Element) -> str:
    return _shortened(part.get("message") or part.text or part.get("type") or "")


def _shortened(text: str) -> str:
    return " ".join(text.split())[:_MOST_WORDS]


def unexpected(outcomes: list[Outcome]) -> list[Outcome]:
    known_failures = reasons("known_failures.txt")
    return [
        outcome
        for outcome in outcomes
        if outcome.result == "failed" and outcome.test not in known_failures
    ]


def outdated(outcomes: list[Outcome]) -> list[str]:
    """Return the entries of the list of known failures whose tests ran and all passed."""
    failing = {outcome.test for outcome in outcomes if outcome.result == "failed"}
    passed = {outcome.test for outcome in outcomes if outcome.result == "passed"}
    return sorted((passed - failing) & reasons("known_failures.txt").keys())
