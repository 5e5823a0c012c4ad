"""Both brokers serve a shadow copy of Apache Kafka like the source."""

from __future__ import annotations

import contextlib
import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Producer

from compat_tests.interchange.contents import Contents, contents_of
from compat_tests.interchange.history import History
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.java

PATIENCE_S = 60


def transact(bootstrap: str) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": "copied"})
    producer.init_transactions(PATIENCE_S)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce("codecs", "value", partition=1)
        producer.flush(PATIENCE_S)
        end()


def shadow(bootstrap: str, folder: Path) -> dict[str, Any]:
    command = [sys.executable, "-m", "wirebroker", "shadow", bootstrap, "--once"]
    command += ["--topics", ".*", "--topics", "__consumer_offsets"]
    command += ["--data-dir", str(folder), "--output", "json"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done
    summary: dict[str, Any] = json.loads(done.stdout)
    return summary


def test_shadow_copy_serves_the_contents_of_apache_kafka(tmp_path: Path) -> None:
    source, copy = SharedFolder(tmp_path / "source"), SharedFolder(tmp_path / "copy")
    history = History(source)
    with (
        source.run("apache") as broker,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        history.add(requests)
        first = shadow(broker.bootstrap, copy.log_dirs[0])
        assert first["fault_count"] == 0
        history.add(requests)
        transact(broker.bootstrap)
        second = shadow(broker.bootstrap, copy.log_dirs[0])
        expected = contents_of(requests)
    assert second["fault_count"] == 0
    assert second["copied_bytes"] > 0
    for kind in ("apache", "wirebroker"):
        with (
            copy.run(kind) as broker,
            contextlib.closing(Requests(address(broker))) as requests,
        ):
            assert_copied(contents_of(requests), expected)


def assert_copied(actual: Contents, expected: Contents) -> None:
    assert actual.topics.keys() == expected.topics.keys()
    for name, topic in actual.topics.items():
        expected_topic = expected.topics[name]
        assert (topic.topic_id, topic.configs) == (
            expected_topic.topic_id,
            expected_topic.configs,
        ), name
        for index, partition in topic.partitions.items():
            expected_partition = expected_topic.partitions[index]
            # A copy keeps records that retention deletes from the source between two runs.
            assert partition.latest == expected_partition.latest
            assert partition.earliest <= expected_partition.earliest
            assert partition.batches.endswith(expected_partition.batches), f"{name}-{index}"
    assert actual.offsets == expected.offsets
