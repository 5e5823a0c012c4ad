"""A transactional producer of single requests, so that a test can stop in mid-transaction."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.support.protocol.transactional_producer import OLD_AGES, TransactionalProducer
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from compat_tests.support.raw_requests import Requests

TIMEOUT_MS = 600_000  # no coordinator aborts it during a test


class OpenTransaction:
    """One transactional id on one broker, initialized."""

    def __init__(self, requests: Requests, transactional_id: str) -> None:
        self._requests = requests
        self.id = TransactionalProducer(transactional_id, OLD_AGES[0], timeout_ms=TIMEOUT_MS)
        lookup = {"key": transactional_id, "key_type": 1}
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, lookup)
        self.id.become(requests.ask_until_served(*self.id.init()))

    def append(self, topic: str, *values: bytes) -> int:
        """Produce a batch to partition 0 within the transaction; return its base offset."""
        self._requests.ask_until_served(*self.id.add_partitions(topic, [0]))
        records = self.id.next_batch(topic, 0, values)
        return self._requests.append(topic, records, transactional_id=self.id.name)

    def commit_offset(self, group: str, topic: str, offset: int) -> None:
        member = {"group_id": group, "generation_id_or_member_epoch": -1, "member_id": ""}
        for ask in self.id.committing(member, topic, {0: offset}):
            self._requests.ask_until_served(*ask)

    def end(self, *, committed: bool) -> None:
        self._requests.ask_until_served(*self.id.end(is_commit=committed))
        self._requests.poll(self._is_complete)

    def _is_complete(self) -> bool:
        request = {"transactional_ids": [self.id.name]}
        answer = self._requests.ask(ApiKey.DESCRIBE_TRANSACTIONS, 0, request)
        state: str = answer.transaction_states[0].transaction_state
        return state.startswith("Complete")
