"""Actions of alternating brokers on a shared folder, of every kind that changes its files."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from compat_tests.support.raw_requests import (
    BROKER_RESOURCE,
    DELETE,
    SET,
    TIMESTAMP_MS,
    TOPIC_RESOURCE,
    Requests,
    batch,
    record,
)
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.codec import Codec

if TYPE_CHECKING:
    from compat_tests.interchange.shared_folder import SharedFolder

_WAIT_S = 30.0
_POLL_S = 0.05
_BATCHES = 12  # of the idempotent producer, per broker


class History:
    """Writes to the same topics with the same producer and groups, whichever broker serves.

    Args:
        folder: For the checkpoint that must be on disk before a kill.
    """

    def __init__(self, folder: SharedFolder) -> None:
        self._folder = folder
        self._turn = 0
        self._producer_id = -1
        self._sequence = 0
        self._last: tuple[bytes, int] = b"", -1  # the producer's last batch and its offset
        self._start = 0  # of cut-0

    def add(self, requests: Requests) -> None:
        self._turn += 1
        if self._turn == 1:
            self._begin(requests)
        else:
            self._repeat_newest(requests)
        self._append(requests)
        self._retain(requests)
        self._commit(requests)
        self._change(requests)
        self._cut(requests)

    def _begin(self, requests: Requests) -> None:
        tiny_segments = {"internal.segment.bytes": "1000", "index.interval.bytes": "1"}
        requests.create("codecs", 2, {"compression.type": "producer"})
        requests.create("large", 2, {"segment.bytes": "1048576"})
        requests.create("sequenced", 1, tiny_segments)
        requests.create("retained", 1, {**tiny_segments, "retention.bytes": "1000"})
        requests.create("cut", 1, tiny_segments)
        requests.create("empty", 3)
        self._producer_id = requests.producer_id()

    def _append(self, requests: Requests) -> None:
        turn = self._turn
        for codec in Codec:
            records = [record(n, b"%d" % n, b"turn %d " % turn * 30) for n in range(50)]
            requests.append("codecs", batch(*records, start=turn * 1000, codec=codec))
        for number in range(30):
            data = batch(record(0, b"k", b"x" * 90_000), start=turn * 1000 + number)
            requests.append("large", data, partition=number % 2)
        for _ in range(_BATCHES):
            self._append_next(requests)

    def _append_next(self, requests: Requests) -> None:
        data = batch(
            record(0, b"k", b"one"),
            record(1, b"k", b"two"),
            # A producer with old timestamps would expire at the next start.
            start=time.time_ns() // 1_000_000 - TIMESTAMP_MS,
            producer_id=self._producer_id,
            producer_epoch=0,
            base_sequence=self._sequence,
        )
        self._last = data, requests.append("sequenced", data)
        self._sequence += 2

    def _repeat_newest(self, requests: Requests) -> None:
        """Check that the producer is known: duplicates are not appended, gaps are refused."""
        data, offset = self._last
        assert requests.append("sequenced", data) == offset, "a duplicate has its old offset"
        gap: dict[str, Any] = {
            "producer_id": self._producer_id,
            "producer_epoch": 0,
            "base_sequence": self._sequence + 1,
        }
        refused = requests.try_append("sequenced", batch(record(0, b"k", b"gap"), **gap))
        assert refused.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    def _retain(self, requests: Requests) -> None:
        latest = 0
        for number in range(5):
            data = batch(record(number, b"k", b"r" * 600), start=self._turn * 1000)
            latest = requests.append("retained", data) + 1
        # One batch of 671 bytes per segment: retention by 1,000 bytes leaves two.
        requests.wait_for_start("retained", latest - 2)

    def _commit(self, requests: Requests) -> None:
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        turn = self._turn
        requests.commit("simple", [("codecs", 0, turn, f"turn {turn}"), ("large", 1, 5, "")])
        requests.commit(f"of turn {turn}", [("empty", 2, 0, "")])
        member = requests.join_alone("members")
        assert member[0] == 2 * turn - 1, "generations go on: one joins, and leaves"
        requests.commit("members", [("codecs", 1, turn, "")], member=member)
        leave = {"group_id": "members", "members": [{"member_id": member[1]}]}
        requests.ask(ApiKey.LEAVE_GROUP, 4, leave)
        if turn > 1:
            requests.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": [f"of turn {turn - 1}"]})

    def _change(self, requests: Requests) -> None:
        turn = self._turn
        requests.create(f"from turn {turn}".replace(" ", "-"), 2, {"retention.ms": "999999999"})
        requests.alter(TOPIC_RESOURCE, "empty", ("max.message.bytes", SET, str(2_000_000 + turn)))
        requests.alter(TOPIC_RESOURCE, "empty", ("retention.ms", SET, "1000000"))
        requests.alter(TOPIC_RESOURCE, "empty", ("retention.ms", DELETE, None))
        requests.alter(BROKER_RESOURCE, "", ("message.max.bytes", SET, str(3_000_000 + turn)))
        requests.create("passing", 2)
        requests.append("passing", batch(record(0, b"k", b"v")))
        requests.delete("passing")

    def _cut(self, requests: Requests) -> None:
        """Delete records inside a segment, and check the checkpoint."""
        end = 0
        for number in range(4):
            records = record(number, b"k", b"c" * 300), record(number, b"k", b"d")
            data = batch(*records, start=self._turn * 1000)
            end = requests.append("cut", data) + 2
        self._start = end - 3
        partition = {"partition_index": 0, "offset": self._start}
        topic = {"name": "cut", "partitions": [partition]}
        requests.ask(ApiKey.DELETE_RECORDS, 2, {"topics": [topic], "timeout_ms": 30_000})
        eventually(lambda: self._checkpointed() == self._start, timeout_s=_WAIT_S, poll_s=_POLL_S)

    def _checkpointed(self) -> int | None:
        return self._folder.checkpoint("log-start-offset-checkpoint").get(("cut", 0))
