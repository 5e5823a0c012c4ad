"""Killed executors and full disks (`python -m tests.nightly spark-faults`)."""

from __future__ import annotations

import contextlib
import sys
from typing import TYPE_CHECKING

import pytest

from spark_it.kit import faulty_runs, records
from spark_it.kit.counted_jobs import CountedIngest, CountedJob, CountedReplay, CountedWindows
from spark_it.kit.faulty_runs import WAIT_S, Driver, told
from spark_it.kit.small_disk import small_disk
from spark_it.kit.standalone import StandaloneSpark
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(1_800)]

PARTITIONS = 2
KILLS = 3
each_job = pytest.mark.parametrize(
    "job",
    [kind(30, 500, PARTITIONS) for kind in (CountedIngest, CountedReplay, CountedWindows)],
    ids=lambda job: job.kind,
)


def wait_for(folder: Path, kind: str, count: int, driver: Driver) -> None:
    """Wait until a job has reported a number of lines of a kind, or has ended."""
    eventually(
        lambda: len(told(folder, kind)) >= count or driver.status is not None, timeout_s=WAIT_S
    )


@each_job
def test_job_matches_model_when_executors_are_killed(
    start_broker: StartBroker, job: CountedJob, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    cluster = StandaloneSpark(tmp_path)
    with contextlib.ExitStack() as stack:
        stack.callback(cluster.stop)
        cluster.start()
        path = job.write(tmp_path, broker.bootstrap, topic, cluster.settings(tmp_path))
        driver = Driver(tmp_path, job.kind, str(path))
        stack.callback(driver.kill)
        killed = 0
        for _ in range(KILLS):
            wait_for(tmp_path, "batch", len(told(tmp_path, "batch")) + 2, driver)
            killed += cluster.kill_executors()
        assert driver.wait(WAIT_S) == 0
    assert killed >= KILLS
    sys.stdout.write(f"{job.kind} on a cluster: {killed} kills, all of executors\n")
    job.check(tmp_path, broker.bootstrap, topic)


@each_job
def test_job_matches_model_when_broker_disk_is_temporarily_full(
    start_broker: StartBroker, broker_kind: str, job: CountedJob, topic: str, tmp_path: Path
) -> None:
    with small_disk(tmp_path / "small", 200) as disk, contextlib.ExitStack() as stack:
        broker = start_broker({"log.dirs": str(disk.path / "data")})
        stack.callback(broker.kill9)  # it has files on the disk
        path = job.write(tmp_path, broker.bootstrap, topic, faulty_runs.spark_table(tmp_path))
        driver = Driver(tmp_path, job.kind, str(path))
        stack.callback(driver.kill)
        wait_for(tmp_path, "batch", 3, driver)
        disk.fill()
        wait_for(tmp_path, "fault", 1, driver)
        done = len(told(tmp_path, "batch"))
        disk.make_room()
        if broker_kind == "apache":
            broker.kill9()  # it ended with its only directory
            broker.start()
        assert driver.wait(WAIT_S) == 0
        assert told(tmp_path, "fault"), "the full disk was not noticed"
        sys.stdout.write(f"{job.kind}: full disk behind {done} of {job.batches} batches\n")
        job.check(tmp_path, broker.bootstrap, topic)


@each_job
def test_job_matches_model_when_its_disk_is_temporarily_full(
    start_broker: StartBroker, job: CountedJob, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    with small_disk(tmp_path / "disk", 50) as disk, contextlib.ExitStack() as stack:
        path = job.write(tmp_path, broker.bootstrap, topic, faulty_runs.spark_table(tmp_path))
        driver = Driver(tmp_path, job.kind, str(path))
        stack.callback(driver.kill)
        wait_for(tmp_path, "batch", 3, driver)
        disk.fill()
        wait_for(tmp_path, "fault", 1, driver)
        disk.make_room()
        assert driver.wait(WAIT_S) == 0
        assert told(tmp_path, "fault"), "the full disk was not noticed"
        job.check(tmp_path, broker.bootstrap, topic)


def test_archive_resumes_after_its_disk_was_full(
    start_broker: StartBroker, topic: str, tmp_path: Path
) -> None:
    broker = start_broker()
    records.create_topic(broker.bootstrap, topic, partitions=PARTITIONS)
    records.write(broker.bootstrap, topic, range(20_000), partitions=PARTITIONS)
    with small_disk(tmp_path / "disk", 20) as disk:
        target = str(disk.path / "archive")
        paths = ("--path", str(broker.data_dir), "--topics", topic, "--target", target)
        arguments = (*paths, "--patience", "1")
        settings = faulty_runs.spark_table(tmp_path)

        def run() -> int:
            return Driver(tmp_path, "archive", *arguments, settings=settings).wait(WAIT_S)

        assert run() == 0
        records.write(broker.bootstrap, topic, range(20_000, 40_000), partitions=PARTITIONS)
        disk.fill()
        assert run() == 1
        log = (tmp_path / "driver.log").read_text(encoding="utf-8")
        assert "No space left on device" in log.splitlines()[-1], "told in one line"
        disk.make_room()
        assert run() == 0
        *_, summary = lines = (tmp_path / "driver.log").read_text(encoding="utf-8").splitlines()
        last = lines[-PARTITIONS - 1 : -1]
        assert all(f"-{number}: 20000 records" in line for number, line in enumerate(last)), last
        assert summary.endswith("verified_partitions 2, wrong_partitions 0")
        assert "BUT" not in "".join(last)
