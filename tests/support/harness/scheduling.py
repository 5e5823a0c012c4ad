"""The assignment of tests to the workers of pytest-xdist.

A unit runs on one worker: a file, whose tests share brokers and Java processes; one test of a file
in APART, whose tests have their own; or the files that are TOGETHER because they share an expensive
resource. The longest units start first, so that no worker ends with a long one. There are more
workers than cores, because tests that wait for brokers leave a core idle: one worker per core
starts with the units under tests/, which use the CPU, the others with the rest. A worker without
units of its kind takes others.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from xdist.scheduler import LoadScopeScheduling  # type: ignore[import-untyped]  # has no types

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pytest

_GROUP_LIFE = "compat_tests/groups/test_group_life.py"
APART = (
    _GROUP_LIFE,
    "compat_tests/groups/test_static_members.py",
    "compat_tests/interchange/test_changes_of_hands.py",
    "compat_tests/interchange/test_transactions_and_groups.py",
    "compat_tests/suites/test_suites.py",
    "compat_tests/faults/test_kills.py",
    "compat_tests/kafka_own/test_kafka_own.py",
)
_SPARK = "spark_it/ in one session of Spark"
_OF_SPARK = (
    "connector/test_batch",
    "connector/test_stream",
    "directories/test_segments",
    "faults/test_faults",
    "guide/test_guide",
    "jobs/test_exactly_once",
    "jobs/test_ingest",
    "jobs/test_job_run",
    "jobs/test_parsed_values",
    "jobs/test_pipelines",
    "jobs/test_quality",
    "jobs/test_recreated_topics",
    "jobs/test_replay",
    "jobs/test_windows",
)
TOGETHER = {f"spark_it/{name}.py": _SPARK for name in _OF_SPARK}
# Estimates for the first run: units that would end late, or that build something.
_FIRST_RUN_SECONDS = {
    # Clients in Rust and Go, which are built, and librdkafka's tests.
    f"{_GROUP_LIFE}::test_group_survives_joins_leave_stop_and_kill[rust": 110.0,
    "compat_tests/suites/test_suites.py::test_librdkafka": 250.0,
    "compat_tests/groups/test_mixed_groups.py": 90.0,
    "compat_tests/lockstep/": 60.0,
    _SPARK: 400.0,
    "spark_it/": 90.0,
    "tests/test_packaging.py": 90.0,
    "tests/java/": 50.0,
    "tests/property/test_message_round_trip.py": 50.0,
    "compat_tests/transactions/test_churn.py": 45.0,
    "tests/crash/": 45.0,
    "tests/simulation/": 45.0,
    "compat_tests/interchange/test_compaction.py": 40.0,
    "compat_tests/transactions/test_clients.py": 40.0,
    "compat_tests/messages/test_java": 35.0,
    "compat_tests/admin/test_java": 35.0,
    "tests/property/": 20.0,
    "tests/unit/wirebroker/api/test_loop_holds.py": 20.0,
    "compat_tests/messages/test_messages.py": 25.0,
    "compat_tests/interchange/test_guide.py": 30.0,
    "compat_tests/interchange/": 20.0,
    "compat_tests/groups/": 15.0,
    "compat_tests/console/test_screens.py": 60.0,
    "compat_tests/console/test_tasks.py": 60.0,
    "compat_tests/": 10.0,
}
_UNKNOWN_SECONDS = 1.0


def unit_of(node_id: str) -> str:
    path = node_id.partition("::")[0]
    return node_id if path in APART else TOGETHER.get(path, path)


class LongestFirst(LoadScopeScheduling):
    """Scheduler that assigns units as described above.

    Args:
        config: The run's.
        log: As for each scheduler.
        seconds: The durations of units.
    """

    def __init__(self, config: pytest.Config, log: Any, seconds: Mapping[str, float]) -> None:
        super().__init__(config, log)
        self._seconds = seconds

    def _split_scope(self, nodeid: str) -> str:
        return unit_of(nodeid)

    def _assign_work_unit(self, node: Any) -> None:
        is_for_cores = int(node.gateway.id.removeprefix("gw")) < (os.cpu_count() or 1)
        chosen = choose(self.workqueue, self._seconds, is_for_cores=is_for_cores)
        self.workqueue.move_to_end(chosen, last=False)
        super()._assign_work_unit(node)


def choose(units: Iterable[str], seconds: Mapping[str, float], *, is_for_cores: bool) -> str:
    """Return the longest unit of a worker's kind, or else the longest of all."""

    def rank(unit: str) -> tuple[bool, float]:
        return unit.startswith("tests/") is is_for_cores, seconds_of(unit, seconds)

    return max(units, key=rank)


def seconds_of(unit: str, noted: Mapping[str, float]) -> float:
    """Return a unit's duration from an earlier run, or an estimate."""
    if unit in noted:
        return noted[unit]
    estimates = (seconds for start, seconds in _FIRST_RUN_SECONDS.items() if unit.startswith(start))
    return next(estimates, _UNKNOWN_SECONDS)
