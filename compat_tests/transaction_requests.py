"""A transactional producer by hand, so that it can be left in the middle of what it does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.raw_requests import batch, record
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.raw_requests import Requests

TIMEOUT_MS = 600_000  # no coordinator aborts it during a test


class TransactionalProducer:
    """One transactional id on one broker, from InitProducerId on."""

    def __init__(self, requests: Requests, transactional_id: str) -> None:
        self._requests = requests
        self._id = transactional_id
        self._sequence = 0
        find = {"key": transactional_id, "key_type": 1}
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, find)
        request = {"transactional_id": transactional_id, "transaction_timeout_ms": TIMEOUT_MS}
        answer = requests.ask_until_served(ApiKey.INIT_PRODUCER_ID, 4, request)
        self.producer_id: int = answer.producer_id
        self.producer_epoch: int = answer.producer_epoch

    @property
    def _identity(self) -> dict[str, str | int]:
        return {"producer_id": self.producer_id, "producer_epoch": self.producer_epoch}

    def append(self, topic: str, *values: bytes) -> int:
        """Produce a batch to partition 0 within the transaction; return its base offset."""
        request = {
            "v3_and_below_transactional_id": self._id,
            "v3_and_below_producer_id": self.producer_id,
            "v3_and_below_producer_epoch": self.producer_epoch,
            "v3_and_below_topics": [{"name": topic, "partitions": [0]}],
        }
        self._requests.ask_until_served(ApiKey.ADD_PARTITIONS_TO_TXN, 3, request)
        records = [record(number, b"k", value) for number, value in enumerate(values)]
        data = batch(
            *records,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self._sequence,
            is_transactional=True,
        )
        self._sequence += len(values)
        return self._requests.append(topic, data, transactional_id=self._id)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        """Commit an offset of partition 0 within the transaction."""
        identity = {"transactional_id": self._id, "group_id": group, **self._identity}
        self._requests.ask_until_served(ApiKey.ADD_OFFSETS_TO_TXN, 3, identity)
        partition = {"partition_index": 0, "committed_offset": offset, "committed_metadata": ""}
        topics = [{"name": topic, "partitions": [partition]}]
        request = {**identity, "generation_id": -1, "member_id": "", "topics": topics}
        self._requests.ask_until_served(ApiKey.TXN_OFFSET_COMMIT, 3, request)

    def end(self, *, committed: bool) -> None:
        """End the transaction, and wait until that is done everywhere."""
        request = {"transactional_id": self._id, "committed": committed, **self._identity}
        self._requests.ask_until_served(ApiKey.END_TXN, 3, request)
        self._requests.poll(self._is_complete)

    def _is_complete(self) -> bool:
        request = {"transactional_ids": [self._id]}
        answer = self._requests.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
        state: str = answer.transaction_states[0].transaction_state
        return state.startswith("Complete")
