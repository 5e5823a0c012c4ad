"""Runs the steps of a transcript against a voter of the metadata quorum.

Besides `send`, `frame`, `begin` and `await` of the driver for brokers there is one command:

    lead                      until the only voter leads and has committed its first records

Arguments may use CLUSTER (the cluster's id), `directory(n)` and `endpoints(n)` of node n, `own()`
for the address of the voter itself, and `metadata(…)` and `snapshot(…)`: the only partition of the
metadata log in a request, with these fields.

Offsets of a leader's log and times are not printed: the two kinds write different first records.
"""

from __future__ import annotations

import contextlib
import re
from typing import TYPE_CHECKING, Any, ClassVar, Final

from tests.support.tools.ports import HOST
from tests.transcripts.batches import HELPERS
from tests.transcripts.driver import Driver
from tests.transcripts.quorum.voters import (
    CLUSTER_ID,
    LISTENER,
    JavaVoter,
    OwnVoter,
    directory_id,
)
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.coordinator.controller.image.topic_names import CLUSTER_METADATA_TOPIC
from wirebroker.quorum.log.metadata_store import TOPIC_ID

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from pathlib import Path

    from tests.transcripts.quorum.voters import QuorumVoter
    from tests.transcripts.script import Step

_TOPICS: Final = [
    {"topic_name": CLUSTER_METADATA_TOPIC, "partitions": [{"partition_index": 0}]},
]
# Settings that are not configs.
_OF_QUORUM: Final = ("quorum", "voters")
_POSITIVE: Final = re.compile(
    r"(high_watermark|log_end_offset|end_offset|last_(?:fetch|caught_up)_timestamp|size)"
    r" = (?:[1-9]\d*|the broker's clock|NOW.*)$"
)


def endpoints(node_id: int) -> list[dict[str, Any]]:
    """Return the listeners of a node at which nothing listens."""
    return [{"name": LISTENER, "host": HOST, "port": 9000 + node_id}]


def metadata(**fields: Any) -> list[dict[str, Any]]:
    return [
        {
            "topic_name": CLUSTER_METADATA_TOPIC,
            "partitions": [{"partition_index": 0, **fields}],
        }
    ]


def fetched(**fields: Any) -> list[dict[str, Any]]:
    """Return the topics of a Fetch since v13."""
    partition = {
        "partition": 0,
        "current_leader_epoch": 1,
        "fetch_offset": 0,
        "last_fetched_epoch": 0,
        "log_start_offset": 0,
        "partition_max_bytes": 1 << 20,
    }
    return [{"topic_id": TOPIC_ID, "partitions": [{**partition, **fields}]}]


def snapshot(**fields: Any) -> list[dict[str, Any]]:
    partition = {
        "partition": 0,
        "current_leader_epoch": 1,
        "snapshot_id": {"end_offset": 0, "epoch": 0},
        "position": 0,
    }
    return [{"name": CLUSTER_METADATA_TOPIC, "partitions": [{**partition, **fields}]}]


class QuorumDriver(Driver):
    """Runner of the steps of one transcript."""

    helpers: ClassVar[Mapping[str, Callable[..., Any]]] = {
        **HELPERS,
        "directory": directory_id,
        "endpoints": endpoints,
        "metadata": metadata,
        "fetched": fetched,
        "snapshot": snapshot,
    }

    def __init__(self, voter: QuorumVoter) -> None:
        super().__init__(HOST, voter.port)
        self.port = voter.port
        self.names.values["CLUSTER"] = CLUSTER_ID

    def answer(self, step: Step) -> list[str]:
        if step.command == ("lead",):
            self._poll(self._leads)
            return ["done"]
        lines = super().answer(step)
        return [_POSITIVE.sub(r"\1 = some", line) for line in lines if ".records" not in line]

    def _leads(self) -> bool:
        decoded = self._quietly(ApiKey.DESCRIBE_QUORUM, 1, {"topics": _TOPICS})
        if decoded.error_code or not decoded.topics:
            return False
        partition = decoded.topics[0].partitions[0]
        is_committed = partition.high_watermark == partition.current_voters[0].log_end_offset
        return bool(partition.error_code == 0 and partition.high_watermark > 0 and is_committed)


@contextlib.contextmanager
def fresh_quorum_driver(
    kind: str, directory: Path, steps: Sequence[Step]
) -> Iterator[QuorumDriver]:
    """Start a voter of a kind, `apache` or `wirebroker`, for a transcript."""
    words = dict(word.split("=", 1) for word in steps[0].command[1:])
    voters = [int(voter_id) for voter_id in words["voters"].split(",")]
    make = JavaVoter if kind == "apache" else OwnVoter
    voter = make(
        directory / "voter",
        voters,
        is_dynamic=words["quorum"] == "dynamic",
        configs={name: value for name, value in words.items() if name not in _OF_QUORUM},
    )
    voter.start()
    try:
        with contextlib.closing(QuorumDriver(voter)) as driver:
            yield driver
    finally:
        voter.kill9()
