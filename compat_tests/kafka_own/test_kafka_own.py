"""Apache Kafka's own integration tests, and the parser of their reports."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from compat_tests.kafka_own import suite
from compat_tests.kafka_own.__main__ import chosen
from compat_tests.kafka_own.reports import (
    outcomes_in,
    outcomes_in_feed,
    outdated,
    reasons,
    unexpected,
)
from compat_tests.suites.outcomes import Outcome
from tests.support.tools import tools

# Short classes, some ten seconds each: a client's and a tool's. All classes run nightly.
# Transcripts and compat_tests/scripts test the same requests and tools as the others.
CLASSES = ("ClientTelemetryTest", "DeleteRecordsCommandTest")
_REPORT = """<testsuite>
  <testcase name="passes()"/>
  <testcase name="looksInside()"><failure message="">
    Wrapped: org.opentest4j.TestAbortedException: internals: a broker</failure></testcase>
  <testcase name="casts()"><error message="Proxy7 cannot be cast to class kafka.X"/></testcase>
  <testcase name="isSkipped(int)"><skipped>twin: run once</skipped></testcase>
  <testcase name="fails()"><failure message="expected 1\nbut was 2"/></testcase>
</testsuite>"""

_RUN = "JUnit Jupiter > SomeTest > "
_FEED = f"""{_RUN}passes() > passes [1] isolated MetadataVersion=4.4 :: STARTED
{_RUN}passes() > passes [1] isolated MetadataVersion=4.4 :: SUCCESSFUL
{_RUN}looksInside(int, String) > looksInside [1] :: STARTED
{_RUN}looksInside(int, String) > looksInside [1] :: FAILED
\tWrapped: org.opentest4j.TestAbortedException: internals: a broker
{_RUN}isTwin() > isTwin [2] :: ABORTED
\ttwin: run once
{_RUN}fails() > fails [1] :: FAILED
\torg.opentest4j.AssertionFailedError: expected 1
\t\tat SomeTest.fails
{_RUN}runsWhenTheClassIsKilled() > x [1] :: STARTED
"""


@pytest.mark.java
@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CLASSES)
def test_kafka_test_class_passes(name: str, broker_kind: str, tmp_path: Path) -> None:
    missing = suite.missing_program()
    if missing is not None:
        pytest.skip(f"Kafka's own tests need {missing} on PATH")
    command = suite.APACHE if broker_kind == "apache" else suite.own_command()
    (whole_name,) = [
        class_name for class_name in suite.class_names() if class_name.rpartition(".")[2] == name
    ]
    broker = suite.Broker(command, "", suite.MOST_CONTROLLERS)
    outcomes = suite.run_class(whole_name, broker, tmp_path)
    assert not unexpected(outcomes)
    assert not outdated(outcomes)
    assert any(outcome.result == "passed" for outcome in outcomes), outcomes


def test_kafka_test_using_broker_internals_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "TEST-junit.xml").write_text(_REPORT, "utf-8")
    assert outcomes_in("org.apache.SomeTest", tmp_path) == [
        Outcome("SomeTest.passes", "passed"),
        Outcome("SomeTest.looksInside", "skipped", "internals: a broker"),
        Outcome("SomeTest.casts", "skipped", "internals: a cast"),
        Outcome("SomeTest.isSkipped", "skipped", "twin: run once"),
        Outcome("SomeTest.fails", "failed", "expected 1 but was 2"),
    ]


def test_aborted_run_has_outcomes_of_finished_tests() -> None:
    assert outcomes_in_feed("org.apache.SomeTest", _FEED) == [
        Outcome("SomeTest.passes", "passed"),
        Outcome("SomeTest.looksInside", "skipped", "internals: a broker"),
        Outcome("SomeTest.isTwin", "skipped", "twin: run once"),
        Outcome(
            "SomeTest.fails",
            "failed",
            "org.opentest4j.AssertionFailedError: expected 1 at SomeTest.fails",
        ),
        Outcome("SomeTest", "failed", "the run was aborted after 4 tests, or no method matches"),
    ]


def test_known_failure_that_passes_is_reported() -> None:
    known_failure = next(iter(reasons("known_failures.txt")))
    assert outdated([Outcome(known_failure, "passed")]) == [known_failure]
    assert outdated([Outcome(known_failure, "passed"), Outcome(known_failure, "failed")]) == []
    assert unexpected([Outcome(known_failure, "failed"), Outcome("X.y", "failed")]) == [
        Outcome("X.y", "failed")
    ]


def test_excluded_class_runs_only_if_pattern_matches() -> None:
    names, left_out = ["a.ShareConsumerTest", "a.TopicTest"], {"ShareConsumerTest"}
    assert chosen(names, (), (1, 1), left_out) == ["a.TopicTest"]
    assert chosen(names, ("Share",), (1, 1), left_out) == ["a.ShareConsumerTest"]
    assert chosen(names, (), (1, 1)) == names


def test_classes_of_kafka_streams_run_only_if_pattern_matches() -> None:
    names = ["org.apache.kafka.streams.integration.EosIntegrationTest", "a.TopicTest"]
    assert chosen(names, (), (1, 1)) == ["a.TopicTest"]
    assert chosen(names, ("Eos",), (1, 1)) == names[:1]


def test_nodes_run_this_trees_sources() -> None:
    code = "import wirebroker; print(wirebroker.__file__)"
    command = [sys.executable, "-c", code]
    done = subprocess.run(
        command, env=suite.environment(), cwd="/", capture_output=True, text=True, check=True
    )
    assert Path(done.stdout.strip()) == tools.PROJECT / "wirebroker" / "__init__.py"


def test_parts_together_contain_all_classes() -> None:
    names = [f"Test{number}" for number in range(10)]
    parts = [chosen(names, (), (number, 4)) for number in range(1, 5)]
    assert sorted(name for part in parts for name in part) == names
    assert chosen(names, ("[37]", "t4"), (1, 1)) == ["Test3", "Test4", "Test7"]
