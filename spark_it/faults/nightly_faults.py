"""Jobs under many faults, each record once (`python -m tests.nightly spark-faults`).

A job's broker, driver and workers are killed, and its driver is terminated. Then it runs to its
end, and the topic is compared with a model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from spark_it.kit import faulty_runs
from spark_it.kit.counted_jobs import (
    CountedIngest,
    CountedJob,
    CountedQuery,
    CountedReplay,
    CountedWindows,
)
from spark_it.kit.faulty_runs import FaultyRun

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(3_600)]

JOBS = (
    CountedIngest(75, 2_000, 3),
    CountedReplay(75, 2_000, 3),
    CountedWindows(15, 4_000, 3),
    CountedQuery(75, 2_000, 3),
)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.kind)
def test_job_under_faults_matches_model_with_each_record_once(
    start_broker: StartBroker,
    job: CountedJob,
    topic: str,
    tmp_path: Path,
    pytestconfig: pytest.Config,
) -> None:
    broker = start_broker()
    spark = faulty_runs.spark_table(tmp_path)
    path = job.write(tmp_path, broker.bootstrap, topic, spark)
    FaultyRun(job.kind, path, broker, pytestconfig.option.seed).run()
    job.check(tmp_path, broker.bootstrap, topic)
