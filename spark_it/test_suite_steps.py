"""The run of all of Spark's suites: a step for each, once."""

from __future__ import annotations

from spark_it.suites.full import MINUTES, steps_of
from spark_it.suites.run import LIMITS_S, SUITES


def test_each_suite_is_a_step_of_its_own():
    steps = steps_of("apache")
    assert len(steps) == len(MINUTES) == 32
    assert set(SUITES) <= MINUTES.keys()
    assert LIMITS_S.keys() <= MINUTES.keys()
    assert steps[0].command == ("spark_it.suites.run", SUITES[0], "--broker", "apache")
