"""A folder that Apache Kafka and wirebroker serve in turns."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Literal

from tests.support.brokers import java_start
from tests.support.brokers.brokers import HOST, ApacheKafka, Broker, Wirebroker

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

End = Literal["stop", "kill"]

OFFSETS_PARTITIONS = 3
SETTINGS = {
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": str(OFFSETS_PARTITIONS),
    "transaction.state.log.num.partitions": "2",
    "share.coordinator.state.topic.num.partitions": "2",
    "log.retention.ms": "-1",
    "log.retention.check.interval.ms": "300",
    "log.initial.task.delay.ms": "300",
    "log.segment.delete.delay.ms": "0",
    # Deletions must be on disk before a kill; the tests check the file.
    "log.flush.start.offset.checkpoint.interval.ms": "300",
    # Frequent snapshots, so that each broker starts from the other's.
    "metadata.log.max.record.bytes.between.snapshots": "2000",
}


class SharedFolder:
    """The data of a one-node cluster, and a broker of each kind to serve it.

    Args:
        folder: Contains everything.
        layout: "one" log directory; "several": a separate one for the metadata log.
        has_dynamic_voters: Format with the voters in the metadata log (kraft.version 1).
    """

    def __init__(
        self,
        folder: Path,
        *,
        layout: Literal["one", "several"] = "one",
        has_dynamic_voters: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self.log_dirs = [folder / "data"]
        self.metadata_dir = folder / "data"
        directory_settings: dict[str, str] = {}
        if layout == "several":
            self.log_dirs = [folder / "data-1", folder / "data-2", folder / "data-3"]
            self.metadata_dir = folder / "metadata"
            directory_settings["metadata.log.dir"] = str(self.metadata_dir)
        directory_settings["log.dirs"] = ",".join(map(str, self.log_dirs))
        all_settings = {**SETTINGS, **directory_settings, **(settings or {})}
        java_options = java_start.options()
        self.apache = ApacheKafka(folder / "apache", all_settings, java_options=java_options)
        self.apache.format_options = []  # the default features of a new cluster
        self.apache.has_dynamic_voters = has_dynamic_voters
        self.wirebroker = Wirebroker(folder / "wirebroker", all_settings)

    @contextlib.contextmanager
    def run(self, kind: str, end: End = "stop") -> Iterator[Broker]:
        broker: Broker = self.apache if kind == "apache" else self.wirebroker
        broker.start()
        try:
            yield broker
        except BaseException:
            broker.kill9()
            raise
        if end == "stop":
            broker.stop()
        else:
            broker.kill9()

    def checkpoint(self, name: str) -> dict[tuple[str, int], int]:
        """Return the rows of a checkpoint file in all log directories."""
        rows: dict[tuple[str, int], int] = {}
        for directory in self.log_dirs:
            with contextlib.suppress(FileNotFoundError):
                for line in (directory / name).read_text().splitlines()[2:]:
                    topic, partition, offset = line.split(" ")
                    rows[topic, int(partition)] = int(offset)
        return rows


def address(broker: Broker) -> tuple[str, int]:
    return HOST, broker.port
