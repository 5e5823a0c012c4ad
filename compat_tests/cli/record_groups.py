"""Record what Apache Kafka writes for groups of each kind; then read git diff.

python -m compat_tests.cli.record_groups
"""

from __future__ import annotations

import argparse
import contextlib
import subprocess
import tempfile
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Final

from compat_tests.support.newer_groups import SETTINGS, make_newer_groups
from compat_tests.support.raw_requests import Requests
from tests.support.brokers import java_start
from tests.support.brokers.brokers import HOST, ApacheKafka
from tests.support.records.recorded import PATH, Recorded, text_of
from tests.support.tools.tools import KAFKA_VERSION, REFERENCE_VERSION
from wirebroker.inspect.rows.dump import DumpOptions, dump
from wirebroker.inspect.views.read_only_files import ReadOnlyFiles

if TYPE_CHECKING:
    from collections.abc import Iterator

DECODERS: Final = {
    "__consumer_offsets": "--offsets-decoder",
    "__share_group_state": "--share-group-state-decoder",
}
_MOST_ALIKE: Final = 3
DUMPER: Final = "org.apache.kafka.tools.DumpLogSegments"


def logs_of(data: Path, topic: str) -> list[Path]:
    """Return the segments of a topic with one partition."""
    return sorted((data / f"{topic}-0").glob("*.log"))


def kafkas_dump(logs: list[Path], *options: str) -> str:
    """Return the output of Kafka's tool."""
    command = [*java_start.command("-Xmx256m", DUMPER), *options]
    command += ["--files", ",".join(map(str, logs))]
    return subprocess.run(command, capture_output=True, text=True, check=True, timeout=120).stdout


def make_directory(folder: Path) -> Path:
    """Return the data directory of a stopped Apache Kafka with groups of each kind."""
    broker = ApacheKafka(folder / "broker", SETTINGS, java_options=java_start.options())
    with broker, contextlib.closing(Requests((HOST, broker.port))) as requests:
        make_newer_groups(requests, broker.bootstrap)
    return broker.data_dir


def _records(data: Path, topic: str) -> Iterator[Recorded]:
    """Yield some records of a topic: for each kind, the first ones with a value and without."""
    logs = logs_of(data, topic)
    lines = kafkas_dump(logs, DECODERS[topic], "--skip-record-metadata").splitlines()
    dumps = [line.removeprefix("| ") for line in lines if line.startswith("| ")]
    options = DumpOptions(shows_records=True, opens_compressed=True)
    rows = dump(ReadOnlyFiles(), map(str, logs), options, lambda _: None)
    records = [row for row in rows if row["type"] == "record"]
    counts: Counter[str] = Counter()
    for row, line in zip(records, dumps, strict=True):
        recorded = Recorded(topic, row["key"], row["value"], line)
        counts[str(recorded)] += 1
        if counts[str(recorded)] <= _MOST_ALIKE:
            yield recorded


def main() -> None:
    argparse.ArgumentParser(description=__doc__).parse_args()
    assert KAFKA_VERSION == REFERENCE_VERSION, "unset WIREBROKER_TESTS_KAFKA"
    with tempfile.TemporaryDirectory() as folder:
        data = make_directory(Path(folder))
        records = [record for topic in DECODERS for record in _records(data, topic)]
    PATH.write_text(text_of(records), encoding="utf-8")


if __name__ == "__main__":
    main()
