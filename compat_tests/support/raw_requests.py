"""Single requests to a broker of either kind, without a client library.

Batches have fixed times, so that the same calls store the same bytes in every broker.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools.waiting import eventually
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.records.batch import build_batch
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.record import Record
from wirebroker.coordinator.groups.partitions import partition_for

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

TIMESTAMP_MS = 1_700_000_000_000
TOPIC_RESOURCE, BROKER_RESOURCE = 2, 4
SET, DELETE, APPEND, SUBTRACT = range(4)
_WAIT_S = 30.0
_FETCH_BYTES = 32 << 20
_POLL_S = 0.05
# Temporary errors: a leader, a log, a coordinator or producer ids are not available yet.
_NOT_YET = {
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.LEADER_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
    ErrorCode.NOT_LEADER_OR_FOLLOWER,
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.CONCURRENT_TRANSACTIONS,
}


class Requests:
    def __init__(self, address: tuple[str, int]) -> None:
        self.address = address
        self._client = BlockingClient(address)

    def close(self) -> None:
        self._client.close()

    def ask(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Send a request, check that it succeeded, and return the response."""
        answer = self.try_ask(key, version, request)
        assert not (errors := _errors(answer)), f"{key.name}: {errors}"
        return answer

    def try_ask(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Send a request and return the response, even with errors."""
        return self._client.ask(key, version, request)

    def ask_until_served(self, key: ApiKey, version: int, request: dict[str, Any]) -> Any:
        """Retry a request while its errors are temporary."""
        deadline = time.monotonic() + _WAIT_S
        while True:
            answer = self._client.ask(key, version, request)
            errors = _errors(answer)
            if not errors:
                return answer
            assert errors <= _NOT_YET, f"{key.name}: {errors}"
            assert time.monotonic() < deadline, f"{key.name}: still {errors}"
            time.sleep(_POLL_S)  # no event announces it

    def create(self, name: str, partitions: int, configs: dict[str, str] | None = None) -> None:
        """Create a topic and wait until all its logs exist."""
        entries = [{"name": key, "value": value} for key, value in (configs or {}).items()]
        topic = {"name": name, "num_partitions": partitions, "replication_factor": 1}
        request = {"topics": [{**topic, "configs": entries}], "timeout_ms": 30_000}
        self.ask(ApiKey.CREATE_TOPICS, 7, request)
        self.wait_for_partitions(name, partitions)

    def delete(self, name: str) -> None:
        self.ask(ApiKey.DELETE_TOPICS, 6, {"topics": [{"name": name}], "timeout_ms": 30_000})
        request = {"topics": [{"name": name}], "allow_auto_topic_creation": False}
        self.poll(
            lambda: (
                self._client.ask(ApiKey.METADATA, 12, request).topics[0].error_code
                == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            )
        )

    def append(
        self,
        topic: str,
        data: bytes | bytearray,
        *,
        partition: int = 0,
        transactional_id: str | None = None,
    ) -> int:
        answer = self.try_append(
            topic, data, partition=partition, transactional_id=transactional_id
        )
        assert answer.error_code == ErrorCode.NONE, f"{topic}: {ErrorCode(answer.error_code).name}"
        return int(answer.base_offset)

    def try_append(
        self,
        topic: str,
        data: bytes | bytearray,
        *,
        partition: int = 0,
        transactional_id: str | None = None,
    ) -> Any:
        """Produce one batch; return the partition's response, even with an error."""
        partitions = [{"index": partition, "records": bytes(data)}]
        topics = [{"name": topic, "partition_data": partitions}]
        request = {
            "transactional_id": transactional_id,
            "acks": -1,
            "timeout_ms": 30_000,
            "topic_data": topics,
        }
        answer = self._client.ask(ApiKey.PRODUCE, 9, request)
        return answer.responses[0].partition_responses[0]

    def fetch(self, topic: str, partition: int, offset: int, *, isolation_level: int = 0) -> Any:
        fetch_partition = {
            "partition": partition,
            "fetch_offset": offset,
            "partition_max_bytes": _FETCH_BYTES,
        }
        request = {
            "max_wait_ms": 0,
            "min_bytes": 0,
            "max_bytes": _FETCH_BYTES,
            "isolation_level": isolation_level,
            "topics": [{"topic": topic, "partitions": [fetch_partition]}],
        }
        answer = self.ask(ApiKey.FETCH, 12, request)
        return answer.responses[0].partitions[0]

    def offset(
        self, topic: str, partition: int, timestamp: int, *, isolation_level: int = 0
    ) -> tuple[int, int]:
        """Return (offset, timestamp) from ListOffsets for a normal or special timestamp."""
        partitions = [{"partition_index": partition, "timestamp": timestamp}]
        request = {
            "replica_id": -1,
            "isolation_level": isolation_level,
            "topics": [{"name": topic, "partitions": partitions}],
        }
        answer = self.ask_until_served(ApiKey.LIST_OFFSETS, 7, request)
        result = answer.topics[0].partitions[0]
        return result.offset, result.timestamp

    def finalized_features(self) -> dict[str, int]:
        request = {"client_software_name": "test", "client_software_version": "1"}
        answer = self.ask(ApiKey.API_VERSIONS, 3, request)
        return {feature.name: feature.max_version_level for feature in answer.finalized_features}

    def producer_id(self) -> int:
        request = {"transactional_id": None, "transaction_timeout_ms": 60_000}
        answer = self.ask_until_served(ApiKey.INIT_PRODUCER_ID, 4, request)
        return int(answer.producer_id)

    def alter(self, kind: int, name: str, *changes: tuple[str, int, str | None]) -> None:
        """Change configs of one resource, given as (name, operation, value)."""
        configs = [
            {"name": config, "config_operation": operation, "value": value}
            for config, operation, value in changes
        ]
        resource = {"resource_type": kind, "resource_name": name, "configs": configs}
        self.ask(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource], "validate_only": False}
        )

    def commit(
        self,
        group: str,
        offsets: Sequence[tuple[str, int, int, str]],
        *,
        member: tuple[int, str] = (-1, ""),
    ) -> None:
        """Commit (topic, partition, offset, metadata) each; `member` is (generation, id)."""
        topics: dict[str, list[dict[str, Any]]] = {}
        for topic, partition, offset, metadata in offsets:
            entry = {"partition_index": partition, "committed_offset": offset}
            topics.setdefault(topic, []).append({**entry, "committed_metadata": metadata})
        request = {
            "group_id": group,
            "generation_id_or_member_epoch": member[0],
            "member_id": member[1],
            "topics": [
                {"name": name, "partitions": partitions} for name, partitions in topics.items()
            ],
        }
        self.ask_until_served(ApiKey.OFFSET_COMMIT, 8, request)

    def try_join(self, group: str, member_id: str = "") -> Any:
        """Retry JoinGroup until a coordinator is available; return its response."""
        request = {
            "group_id": group,
            "session_timeout_ms": 30_000,
            "rebalance_timeout_ms": 30_000,
            "member_id": member_id,
            "protocol_type": "consumer",
            "protocols": [{"name": "range", "metadata": bytes.fromhex("0000 00000000 ffffffff")}],
        }
        deadline = time.monotonic() + _WAIT_S
        while True:
            answer = self._client.ask(ApiKey.JOIN_GROUP, 7, request)
            if answer.error_code not in _NOT_YET or time.monotonic() >= deadline:
                return answer
            time.sleep(_POLL_S)  # no event announces it

    def join_alone(self, group: str) -> tuple[int, str]:
        first = self.try_join(group)
        assert first.error_code == ErrorCode.MEMBER_ID_REQUIRED, first.error_code
        joined = self.try_join(group, first.member_id)
        assert joined.error_code == ErrorCode.NONE, joined.error_code
        generation = {
            "group_id": group,
            "generation_id": joined.generation_id,
            "member_id": joined.member_id,
        }
        assignment = {"member_id": joined.member_id, "assignment": b"all"}
        protocol = {"protocol_type": "consumer", "protocol_name": "range"}
        self.ask(ApiKey.SYNC_GROUP, 5, {**generation, **protocol, "assignments": [assignment]})
        self.ask(ApiKey.HEARTBEAT, 4, generation)
        return joined.generation_id, joined.member_id

    # -- waiting -----------------------------------------------------------------------------

    def wait_for_partitions(self, topic: str, count: int) -> None:
        for timestamp in (-1, -2):
            partitions = [{"partition_index": n, "timestamp": timestamp} for n in range(count)]
            request = {"replica_id": -1, "topics": [{"name": topic, "partitions": partitions}]}
            self.ask_until_served(ApiKey.LIST_OFFSETS, 7, request)

    def wait_for_start(self, topic: str, offset: int) -> None:

        def is_there() -> bool:
            start, _ = self.offset(topic, 0, -2)
            assert start <= offset, f"{topic} begins at {start}, beyond {offset}"
            return start == offset

        self.poll(is_there)

    def wait_for_groups(self, partition_count: int) -> None:
        """Wait until all partitions of `__consumer_offsets` are loaded: ListGroups skips others."""
        self.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        names = {partition_for(str(n), partition_count): str(n) for n in range(100)}
        assert len(names) == partition_count
        for name in names.values():
            self.ask_until_served(ApiKey.DESCRIBE_GROUPS, 5, {"groups": [name]})

    def wait_for_end(self, topic: str, offset: int, *, isolation_level: int = 0) -> None:
        self.poll(lambda: self.offset(topic, 0, -1, isolation_level=isolation_level)[0] == offset)

    def poll(self, condition: Callable[[], bool]) -> None:
        eventually(condition, timeout_s=_WAIT_S, poll_s=_POLL_S)


def record(
    offset_ms: int,
    key: bytes | None,
    value: bytes | None,
    headers: tuple[tuple[str, bytes | None], ...] = (),
) -> Record:
    """Return a record; its time is relative to its batch, in ms."""
    return Record(0, offset_ms, key, value, headers)


def batch(*records: Record, start: int = 0, codec: Codec = Codec.NONE, **header: Any) -> bytes:
    """Return a batch; its time is relative to the stream, in ms."""
    numbered = [
        batch_record._replace(
            offset=number, timestamp=TIMESTAMP_MS + start + batch_record.timestamp
        )
        for number, batch_record in enumerate(records)
    ]
    return bytes(build_batch(numbered, codec=codec, **header))


def _errors(answer: Any) -> set[ErrorCode]:
    """Return all error codes of a response, at any depth."""
    codes: set[ErrorCode] = set()
    pending = [answer]
    while pending:
        value = pending.pop()
        if isinstance(value, list | tuple):
            pending += value
            continue
        for name in getattr(type(value), "__slots__", ()):
            field = getattr(value, name, None)
            if name == "error_code" and field:
                codes.add(ErrorCode(field))
            elif not isinstance(field, bytes | str | int | bytearray | memoryview | None):
                pending.append(field)
    return codes
