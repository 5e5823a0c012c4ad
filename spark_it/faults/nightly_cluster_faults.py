"""Killed executors and full disks (`python -m tests.nightly spark-faults`)."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from spark_it.kit import faulty_runs, records
from spark_it.kit.counted_jobs import CountedIngest, CountedJob, CountedReplay, CountedWindows
from spark_it.kit.faulty_runs import WAIT_S, Driver, told
from spark_it.kit.standalone import StandaloneSpark
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.conftest import StartBroker

pytestmark = [pytest.mark.long, pytest.mark.java, pytest.mark.timeout(1_800)]

PARTITIONS = 2
KILLS = 3
_PIECE = bytes(1 << 16)
each_job = pytest.mark.parametrize(
    "job",
    [kind(30, 500, PARTITIONS) for kind in (CountedIngest, CountedReplay, CountedWindows)],
    ids=lambda job: job.kind,
)


class SmallDisk:
    """A mounted file system."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._ballast = path / "ballast"

    def fill(self) -> None:
        with contextlib.suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            while True:
                file.write(_PIECE)

    def make_room(self) -> None:
        self._ballast.unlink()


@contextlib.contextmanager
def small_disk(path: Path, megabytes: int) -> Iterator[SmallDisk]:
    """Mount a disk; skip the test without root."""
    if shutil.which("mount") is None:
        pytest.skip("no small disk can be mounted: there is no mount")
    path.mkdir()
    size = ("-o", f"size={megabytes}m")
    mount = ["mount", "-t", "tmpfs", *size, "wirebroker-tests", str(path)]
    done = subprocess.run(mount, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no small disk can be mounted: {done.stderr.strip()}")
    try:
        yield SmallDisk(path)
    finally:
        subprocess.run(["umount", "-l", str(path)], check=True)


def wait_for(folder: Path, kind: str, count: int, driver: Driver) -> None:
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
