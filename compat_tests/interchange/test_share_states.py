"""The state of share groups in a folder that both brokers serve in turns."""

from __future__ import annotations

import contextlib
import json
import re
import subprocess
from typing import TYPE_CHECKING, Any, Final

import pytest

from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests
from tests.support.tools.tools import java_command, kafka_jars
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import uuid_text
from wirebroker.coordinator.groups.partitions import SHARE_GROUP_STATE

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.interchange.shared_folder import End

pytestmark = pytest.mark.java

PARTITIONS: Final = 4
SETTINGS: Final = {
    "share.coordinator.snapshot.update.records.per.snapshot": "3",
    "share.coordinator.state.topic.prune.interval.ms": "200",
}
_READ, _WRITE = ApiKey.READ_SHARE_GROUP_STATE, ApiKey.WRITE_SHARE_GROUP_STATE
_SUMMARY = ApiKey.READ_SHARE_GROUP_STATE_SUMMARY


class States:
    """Requests for the state of the group `g` in all partitions of the topic `t`."""

    def __init__(self, requests: Requests) -> None:
        self.requests = requests
        self.topic_id = b""

    def begin(self) -> None:
        """Wait until the states are served."""
        (topic,) = self.requests.ask(ApiKey.METADATA, 12, {"topics": [{"name": "t"}]}).topics
        self.topic_id = topic.topic_id
        keys = [f"g:{uuid_text(self.topic_id)}:{index}" for index in range(PARTITIONS)]
        sought = {"key_type": 2, "coordinator_keys": keys}
        self.requests.ask_until_served(ApiKey.FIND_COORDINATOR, 6, sought)
        self.ask(_SUMMARY, 1, leader_epoch=0)

    def ask(self, key: ApiKey, version: int, **fields: Any) -> list[Any]:
        """Send a request with the same fields for each partition; return the results."""
        partitions = [{"partition": index, **fields} for index in range(PARTITIONS)]
        request = {
            "group_id": "g",
            "topics": [{"topic_id": self.topic_id, "partitions": partitions}],
        }
        response = self.requests.ask_until_served(key, version, request)
        results = [result for topic in response.results for result in topic.partitions]
        return sorted(results, key=lambda result: int(result.partition))

    def write(self, first_offset: int, *, leader_epoch: int, state: int, count: int) -> None:
        batch = {
            "first_offset": first_offset,
            "last_offset": first_offset + 9,
            "delivery_state": state,
            "delivery_count": count,
        }
        self.ask(
            _WRITE,
            1,
            state_epoch=1,
            leader_epoch=leader_epoch,
            start_offset=first_offset // 2,
            delivery_complete_count=first_offset,
            state_batches=[batch],
        )

    def read(self, leader_epoch: int) -> list[Any]:
        """Return the states and summaries."""
        states = [
            (
                result.state_epoch,
                result.start_offset,
                [
                    (
                        batch.first_offset,
                        batch.last_offset,
                        batch.delivery_state,
                        batch.delivery_count,
                    )
                    for batch in result.state_batches
                ],
            )
            for result in self.ask(_READ, 0, leader_epoch=leader_epoch)
        ]
        summaries = [
            (result.leader_epoch, result.delivery_complete_count)
            for result in self.ask(_SUMMARY, 1, leader_epoch=leader_epoch)
        ]
        return [states, summaries]

    def errors(self, key: ApiKey, leader_epoch: int) -> set[ErrorCode]:
        """Return the errors of a request of an older leader."""
        partitions = [{"partition": index, "leader_epoch": leader_epoch} for index in range(2)]
        topics = [{"topic_id": self.topic_id, "partitions": partitions}]
        response = self.requests.try_ask(key, 0, {"group_id": "g", "topics": topics})
        return {
            ErrorCode(result.error_code)
            for topic in response.results
            for result in topic.partitions
        }


@contextlib.contextmanager
def serving(folder: SharedFolder, kind: str, end: End) -> Iterator[States]:
    with (
        folder.run(kind, end) as broker,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        states = States(requests)
        if not requests.ask(ApiKey.METADATA, 12, {"topics": None}).topics:
            requests.create("t", PARTITIONS)
        states.begin()
        yield states


def pruned(folder: SharedFolder) -> bool:
    """Return whether redundant records were deleted, on disk."""
    rows = folder.checkpoint("log-start-offset-checkpoint")
    return any(offset for (topic, _), offset in rows.items() if topic == SHARE_GROUP_STATE)


@pytest.mark.parametrize(
    ("maker", "end"),
    [
        ("wirebroker", "kill"),
        pytest.param("apache", "stop", marks=pytest.mark.nightly),
        pytest.param("wirebroker", "stop", marks=pytest.mark.nightly),
        pytest.param("apache", "kill", marks=pytest.mark.nightly),
    ],
)
def test_states_continue_with_other_broker(tmp_path: Path, maker: str, end: End) -> None:
    other = "wirebroker" if maker == "apache" else "apache"
    folder = SharedFolder(tmp_path, settings=SETTINGS)
    with serving(folder, maker, end) as states:
        states.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, state_epoch=1, start_offset=0)
        for number in range(5):
            states.write(number * 6, leader_epoch=0, state=number % 2 * 2, count=1 + number % 3)
        before = states.read(3)
        eventually(lambda: pruned(folder))
    with serving(folder, other, end) as states:
        assert states.errors(_READ, 2) == {ErrorCode.FENCED_LEADER_EPOCH}
        assert states.read(3) == before
        for number in range(5, 9):
            states.write(number * 6, leader_epoch=3, state=2, count=2)
        before = states.read(4)
    with serving(folder, maker, "stop") as states:
        assert states.read(4) == before
        states.ask(ApiKey.DELETE_SHARE_GROUP_STATE, 0)
        absent = states.ask(_SUMMARY, 1, leader_epoch=0)
    with serving(folder, other, "stop") as states:
        assert states.ask(_SUMMARY, 1, leader_epoch=0) == absent


def test_kafkas_dumper_reads_our_records(tmp_path: Path) -> None:
    settings = {"share.coordinator.snapshot.update.records.per.snapshot": "1"}
    folder = SharedFolder(tmp_path, settings=settings)
    with serving(folder, "wirebroker", "stop") as states:
        states.ask(ApiKey.INITIALIZE_SHARE_GROUP_STATE, 0, state_epoch=1, start_offset=0)
        states.write(10, leader_epoch=0, state=2, count=3)
        states.read(5)
        states.ask(ApiKey.DELETE_SHARE_GROUP_STATE, 0)
        topic_id = uuid_text(states.topic_id)
    records = dumped(sorted(folder.log_dirs[0].glob(f"{SHARE_GROUP_STATE}-*/*.log")))
    batch = {"firstOffset": 10, "lastOffset": 19, "deliveryState": 2, "deliveryCount": 3}
    for partition in range(PARTITIONS):
        key = {"groupId": "g", "topicId": topic_id, "partition": partition}
        values = [value for dumped_key, value in records if dumped_key == key]
        for value in values:
            if value is not None:
                value.pop("createTimestamp", None)
                value.pop("writeTimestamp", None)
        snapshot = {"snapshotEpoch": 0, "stateEpoch": 1, "leaderEpoch": 0, "startOffset": 0}
        update = {"snapshotEpoch": 0, "leaderEpoch": 0, "startOffset": 5}
        assert values == [
            {**snapshot, "deliveryCompleteCount": 0, "stateBatches": []},
            {**update, "deliveryCompleteCount": 10, "stateBatches": [batch]},
            {
                **snapshot,
                "snapshotEpoch": 1,
                "leaderEpoch": 5,
                "startOffset": 5,
                "deliveryCompleteCount": 10,
                "stateBatches": [batch],
            },
            None,
        ]


def dumped(files: list[Path]) -> list[tuple[Any, Any]]:
    """Return the keys and values that Kafka's tool prints, without their types."""
    assert files
    done = subprocess.run(
        [
            *(java_command(), "-Xmx256m", "-cp", f"{kafka_jars()}/*"),
            "org.apache.kafka.tools.DumpLogSegments",
            *("--share-group-state-decoder", "--files", ",".join(map(str, files))),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )
    pairs = re.findall(r"key: (\{.*?\}) payload: (.*)", done.stdout)
    assert pairs, done.stdout
    return [(json.loads(key)["data"], _value(payload)) for key, payload in pairs]


def _value(payload: str) -> Any:
    return None if not payload.startswith("{") else json.loads(payload)["data"]
