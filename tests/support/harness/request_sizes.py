"""Sizes of requests that show whether the broker's code yields, and limits of its work to match.

An eighth of a request's elements shows as much if the time slices are an eighth as long, and the
steps, which the broker does not interrupt, an eighth as large.
"""

from __future__ import annotations

import contextlib
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

_API = "wirebroker.api"
_CONTROL = "wirebroker.coordinator.controller"
_GROUPS = "wirebroker.coordinator.groups"
_STREAMS = f"{_GROUPS}.streams.request_bounds"
_VALIDATION = "wirebroker.storage.log.validation.record_validation"
# Modules that import a limit have a copy of it.
_LIMITS = (
    # Seconds of a slice.
    "wirebroker.base.clock:Slices.SECONDS",
    "wirebroker.base.clock:Slices.BESIDE_OTHERS_SECONDS",
    # Bytes of a request that is decoded on the loop.
    "wirebroker.net.dispatch:LONGEST_ON_LOOP_BYTES",
    "wirebroker.request.body_decoding:LONGEST_ON_LOOP_BYTES",
    f"{_API}.data.fetch:LONGEST_ON_LOOP_BYTES",
    f"{_API}.topics.metadata:LONGEST_ON_LOOP_BYTES",
    # Elements of a request that need no slices, or in one step.
    f"{_API}.data.fetch:_MANY_PARTITIONS",
    f"{_API}.data.list_offsets:_AT_ONCE",
    f"{_API}.data.produce:DENIED_AT_ONCE",
    f"{_API}.data.produce:_MANY_PARTITIONS",
    f"{_API}.groups.chunked_commit:_AT_ONCE",
    f"{_API}.groups.hashing:_FEW_NAMES",
    f"{_API}.groups.leave_group:_AT_ONCE",
    f"{_API}.groups.offset_fetch:_AT_ONCE",
    f"{_API}.groups.streams_group_heartbeat:_LONG_BYTES",
    f"{_API}.topics.describe_topic_partitions:_AT_ONCE",
    f"{_API}.topics.describe_topic_partitions:_RUN",
    f"{_API}.topics.metadata:_AT_ONCE",
    f"{_API}.transactions.add_partitions_to_txn:_AT_ONCE",
    # Ranges, batches, partitions and types of share groups in one step.
    "wirebroker.coordinator.share_partitions.acquisition:MOST_RANGES",
    "wirebroker.coordinator.share_partitions.acknowledgement:_TYPES_STEP",
    "wirebroker.share.state_writes:MOST_BATCHES",
    # Members, topics and partitions of a group whose heartbeat needs no slices.
    f"{_GROUPS}.consumer.member_update:MOST_AT_ONCE",
    f"{_GROUPS}.consumer.prepared_step:_FEW",
    f"{_GROUPS}.consumer.target_assignment:MOST_AT_ONCE",
    f"{_GROUPS}.consumer.subscriptions:_FEW",
    f"{_GROUPS}.share.share_assignment:MOST_AT_ONCE",
    f"{_GROUPS}.share.share_step:_FEW",
    f"{_GROUPS}.shard.topic_lookup:_FEW",
    f"{_GROUPS}.streams.prepared_topology:_FEW",
    f"{_GROUPS}.streams.task_assignment:MOST_AT_ONCE",
    "wirebroker.coordination.streams_topics:_MOST_AT_ONCE",
    # Elements of a streams group's heartbeat.
    f"{_STREAMS}:MOST_CONFIGS",
    f"{_STREAMS}:MOST_COPARTITIONED",
    f"{_STREAMS}:MOST_OFFSETS",
    f"{_STREAMS}:MOST_SUBTOPOLOGIES",
    f"{_STREAMS}:MOST_TASKS_REPORTED",
    f"{_STREAMS}:MOST_TOPICS",
    # Elements of a response that is encoded on the loop.
    "wirebroker.request.request:_FEW_ELEMENTS",
    f"{_API}.topics.metadata:_MANY_PARTITIONS",
    # Metadata records of a request, and partitions in one step of the controller.
    "wirebroker.coordinator.operation:MAX_RECORDS",
    f"{_CONTROL}.topics.topic_control:MAX_RECORDS",
    f"{_CONTROL}.brokers.broker_heartbeat:_SLICE",
    f"{_CONTROL}.partitions.leader_election:_SLICE",
    f"{_CONTROL}.partitions.reassignment:_SLICE",
    f"{_CONTROL}.topics.topic_control:_SLICE",
    f"{_CONTROL}.topics.topic_deletion:_SLICE",
    # Records and bytes of a batch that is validated on the loop, or in one step.
    "wirebroker.replica.local_replica:BRIEF_RECORDS",
    f"{_VALIDATION}:BRIEF_BYTES",
    f"{_VALIDATION}:BRIEF_RECORDS",
    f"{_VALIDATION}:_BRIEF_EFFORT",
    f"{_VALIDATION}:_STEP_BYTES",
    # Refused records in a response.
    "wirebroker.codecs.records.walk:MAX_REFUSED",
    f"{_VALIDATION}:MAX_REFUSED",
    f"{_API}.data.produce_results:_MOST_RECORD_ERRORS",
)
_USUAL: dict[str, Any] = {limit: resolve_name(limit) for limit in _LIMITS}


class RequestSizes(NamedTuple):
    """The largest sizes, or a fraction of them.

    Attributes:
        divisor: Divisor of the sizes, of the work of a turn, and of the broker's limits.
    """

    divisor: int

    def of(self, largest: int) -> int:
        """Return the fraction of a size."""
        return largest // self.divisor

    @contextlib.contextmanager
    def limits(self) -> Iterator[None]:
        """Divide the broker's limits, which may be divided already."""
        with pytest.MonkeyPatch.context() as patch:
            for limit, usual in _USUAL.items():
                holder, _, name = limit.replace(":", ".").rpartition(".")
                value = self.of(usual) if isinstance(usual, int) else usual / self.divisor
                patch.setattr(resolve_name(holder), name, value)
            yield


LARGEST = RequestSizes(1)
EIGHTH = RequestSizes(8)
