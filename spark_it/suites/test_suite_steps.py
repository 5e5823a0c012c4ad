"""Each of Spark's suites is in exactly one step, and in the table."""

from __future__ import annotations

from pathlib import Path

from spark_it.suites.full import GROUPS, steps_of
from spark_it.suites.run import LIMITS_S, SUITES, has_passed
from tests.nightly.__main__ import gave_of


def test_each_suite_is_in_one_step():
    suites = [suite for group in GROUPS.values() for suite in group.suites]
    assert len(suites) == len(set(suites)) == 32
    assert set(SUITES) <= set(suites)
    assert LIMITS_S.keys() <= set(suites)
    steps = {step.name: step.command for step in steps_of("apache", Path("/r"), resumes=True)}
    assert steps["continuous"] == (
        *("spark_it.suites.run", "KafkaContinuousSourceSuite", "--broker", "apache"),
        *("--output", "/r/continuous", "--resume"),
    )


def test_suite_has_passed_if_results_have_no_failure(tmp_path):
    (tmp_path / "results").mkdir()
    suite = "JsonUtilsSuite"
    path = tmp_path / "results" / f"TEST-org.apache.spark.sql.kafka010.{suite}.xml"
    assert not has_passed(suite, tmp_path)
    for case, passed in (("", True), ("<failure message='x'/>", False)):
        path.write_text(
            f"<testsuite><testcase name='a'/><testcase name='b'>{case}</testcase></testsuite>",
            encoding="utf-8",
        )
        assert has_passed(suite, tmp_path) == passed
    path.write_text("<testsuite></testsuite>", encoding="utf-8")
    assert not has_passed(suite, tmp_path)


def test_suite_results_are_parsed_from_output():
    printed = [
        "logs and results: somewhere",
        "JsonUtilsSuite                               2 passed, 0 failed, 0 skipped",
        "consumer.FetchedDataPoolSuite                5 passed, 0 failed, 0 skipped",
        "7 passed, 0 failed, 0 skipped, 9 s",
    ]
    assert gave_of(printed) == printed[1:]
