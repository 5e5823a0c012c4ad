"""Runs the stream on both brokers, one after the other, each on a copy of one formatted folder."""

from __future__ import annotations

import os
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING

from compat_tests.twin.stream import SETTINGS, Stream
from tests.support.brokers import java_start
from tests.support.brokers.brokers import HOST, ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Iterator

_WAIT_S = 60.0
_POLL_S = 0.1


def run_twins(folder: Path) -> tuple[Path, Path]:
    """Return the log directories of Apache Kafka and of wirebroker, both cleanly stopped.

    Formatting draws the directory's id and writes the feature levels: both begin with the same.
    """
    apache = ApacheKafka(folder / "apache", SETTINGS, java_options=java_start.options())
    apache.format_options = []
    apache.format()
    wirebroker = Wirebroker(folder / "wirebroker", SETTINGS)
    shutil.copytree(apache.data_dir, wirebroker.data_dir)
    _run(apache)
    # Where the broker listens is a part of its registration.
    wirebroker.port = apache.port
    _run(wirebroker)
    return apache.data_dir, wirebroker.data_dir


def _run(broker: Broker) -> None:
    broker.start()
    try:
        Stream((HOST, broker.port)).run()
        _wait_until_removed(broker.data_dir)
    finally:
        broker.stop()


def _wait_until_removed(directory: Path) -> None:
    """Wait until what was deleted is gone from the disk: each broker does that in its own time."""
    deadline = time.monotonic() + _WAIT_S
    # Retention takes the segments below what DeleteRecords has asked for, in its own time as well.
    cut = [directory / f"cut-{index}" / f"{0:020}.log" for index in (1, 2)]
    while left := [*_deleted_in(directory), *(path for path in cut if path.exists())]:
        assert time.monotonic() < deadline, f"not removed: {left}"
        time.sleep(_POLL_S)


def _deleted_in(directory: Path) -> Iterator[Path]:
    """Return files and folders that are marked for removal; any may disappear meanwhile."""
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            if name.endswith((".deleted", "-delete")):
                yield Path(folder, name)
