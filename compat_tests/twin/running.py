"""Run the stream on both brokers, one after the other, each on a copy of one formatted folder."""

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
    """Return the log directories of Apache Kafka and wirebroker after clean stops.

    Formatting generates the directory's id and writes the feature levels, so both start equal.
    """
    apache = ApacheKafka(folder / "apache", SETTINGS, java_options=java_start.options())
    apache.format_options = []
    apache.format()
    wirebroker = Wirebroker(folder / "wirebroker", SETTINGS)
    shutil.copytree(apache.data_dir, wirebroker.data_dir)
    _run(apache)
    # The registration includes the broker's port.
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
    """Wait until deleted files are gone: each broker removes them with its own delay."""
    deadline = time.monotonic() + _WAIT_S
    # Retention deletes segments before DeleteRecords' offset, also with a delay.
    cut = [directory / f"cut-{index}" / f"{0:020}.log" for index in (1, 2)]
    while remaining := [*_deleted_in(directory), *(path for path in cut if path.exists())]:
        assert time.monotonic() < deadline, f"not removed: {remaining}"
        time.sleep(_POLL_S)  # no event announces it


def _deleted_in(directory: Path) -> Iterator[Path]:
    """Return files and folders marked for deletion; any may disappear meanwhile."""
    for folder, folders, files in os.walk(directory):
        for name in (*folders, *files):
            if name.endswith((".deleted", "-delete")):
                yield Path(folder, name)
