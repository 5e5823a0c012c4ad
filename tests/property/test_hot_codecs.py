"""Hand-written message codecs against two others, our generic codec and kio, in every version.

Both parsers must read the generic codec's random requests alike. Hand-written responses must equal
the generic codec's bytes, and kio must read them and write the same bytes.
"""

from __future__ import annotations

import datetime
import io
import uuid
from dataclasses import fields as dataclass_fields
from dataclasses import is_dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from tests.support.harness.budget import SharedBudget
from tests.support.protocol.message_values import ValueMaker, kio_knows
from wirebroker.codecs.api_keys import API_VERSIONS, FIRST_PRODUCE_VERSION, ApiKey
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hot.api_versions import encode_api_versions, parse_api_versions
from wirebroker.codecs.hot.fetch import parse_fetch
from wirebroker.codecs.hot.fetch_response import FetchPartitionResult, encode_fetch
from wirebroker.codecs.hot.metadata import (
    PartitionView,
    TopicView,
    encode_metadata,
    encode_topic,
    parse_metadata,
)
from wirebroker.codecs.hot.produce import ProduceTopic, parse_produce
from wirebroker.codecs.hot.produce_response import PartitionResult, encode_produce
from wirebroker.codecs.messages import (
    decode_request,
    encode_request,
    encode_response,
    request_message,
    response_message,
)
from wirebroker.codecs.primitives import ZERO_UUID

if TYPE_CHECKING:
    from collections.abc import Callable

PARSERS: dict[ApiKey, Callable[[memoryview, int, int], Any]] = {
    ApiKey.PRODUCE: parse_produce,
    ApiKey.FETCH: parse_fetch,
    ApiKey.METADATA: parse_metadata,
    ApiKey.API_VERSIONS: parse_api_versions,
}
KEYS = list(PARSERS)
# Bytes before the body, so that no parser mistakes the frame's start for the body's.
HEADER = b"\xff" * 5


def versions(key: ApiKey) -> range:
    first = FIRST_PRODUCE_VERSION if key is ApiKey.PRODUCE else API_VERSIONS[key].min_version
    return range(first, API_VERSIONS[key].max_version + 1)


CASES = [(key, version) for key in KEYS for version in versions(key)]


@cache
def kio_schema(key: ApiKey, version: int, *, is_request: bool) -> Any:
    return (load_request_schema if is_request else load_response_schema)(int(key), version)


def read_by_kio(key: ApiKey, version: int, data: bytes, *, is_request: bool) -> Any:
    schema = kio_schema(key, version, is_request=is_request)
    entity, length = entity_reader(schema)(data, 0)
    assert length == len(data)
    return entity


def written_by_kio(key: ApiKey, version: int, entity: Any, *, is_request: bool) -> bytes:
    buffer = io.BytesIO()
    entity_writer(kio_schema(key, version, is_request=is_request))(buffer, entity)
    return buffer.getvalue()


def plain(value: Any) -> Any:
    """Convert kio's objects to dicts, lists, numbers, texts and bytes."""
    if is_dataclass(value):
        return {field.name: plain(getattr(value, field.name)) for field in dataclass_fields(value)}
    if isinstance(value, tuple):
        return [plain(element) for element in value]
    if isinstance(value, datetime.timedelta):
        return value // datetime.timedelta(milliseconds=1)
    if isinstance(value, uuid.UUID):
        return value.bytes
    return value


def uuid_of(value: bytes | None) -> bytes:
    """Return a uuid as wirebroker has it: kio reads zero as None."""
    return value or ZERO_UUID


def produce_request_as_kio(request: Any, version: int) -> dict[str, Any]:
    return {
        "transactional_id": request.transactional_id,
        "acks": request.acks,
        "timeout": request.timeout_ms,
        "topic_data": [
            {
                **topic_as_kio(topic.name, topic.topic_id, version >= 13, "name"),
                "partition_data": [
                    {
                        "index": index,
                        "records": None if records is None else bytes(records),
                    }
                    for index, records in topic.partitions
                ],
            }
            for topic in request.topics
        ],
    }


def topic_as_kio(name: str, topic_id: bytes, by_id: bool, field: str) -> dict[str, Any]:
    if not by_id:
        assert topic_id == ZERO_UUID
        return {field: name}
    assert name == ""
    return {"topic_id": None if topic_id == ZERO_UUID else topic_id}


def fetch_request_as_kio(request: Any, version: int) -> dict[str, Any]:
    by_id = version >= 13
    value: dict[str, Any] = {
        "max_wait": request.max_wait_ms,
        "min_bytes": request.min_bytes,
        "max_bytes": request.max_bytes,
        "isolation_level": request.isolation_level,
        "topics": [
            {
                **topic_as_kio(topic.name, topic.topic_id, by_id, "topic"),
                "partitions": [fetch_partition_as_kio(row, version) for row in topic.partitions],
            }
            for topic in request.topics
        ],
    }
    if version >= 7:
        value |= {
            "session_id": request.session_id,
            "session_epoch": request.session_epoch,
            "forgotten_topics_data": [
                {**topic_as_kio(name, topic_id, by_id, "topic"), "partitions": indexes}
                for name, topic_id, indexes in request.forgotten_topics
            ],
        }
    if version >= 11:
        value["rack_id"] = request.rack_id
    if version >= 12:
        value["cluster_id"] = request.cluster_id
    if version >= 15:
        value["replica_state"] = {
            "replica_id": request.replica_id,
            "replica_epoch": request.replica_epoch,
        }
    else:
        value["replica_id"] = request.replica_id
    return value


def fetch_partition_as_kio(partition: Any, version: int) -> dict[str, Any]:
    value = {
        "partition": partition.index,
        "fetch_offset": partition.fetch_offset,
        "partition_max_bytes": partition.max_bytes,
    }
    if version >= 5:
        value["log_start_offset"] = partition.log_start_offset
    if version >= 9:
        value["current_leader_epoch"] = partition.current_leader_epoch
    if version >= 12:
        value["last_fetched_epoch"] = partition.last_fetched_epoch
    if version >= 17:
        directory_id = partition.replica_directory_id
        value["replica_directory_id"] = None if directory_id == ZERO_UUID else directory_id
    if version >= 18:
        value["high_watermark"] = partition.high_watermark
    return value


def metadata_request_as_kio(request: Any, version: int) -> dict[str, Any]:
    topics: list[dict[str, Any]] | None = None
    if request.topics is not None or version == 0:
        topics = []
        for topic_id, name in request.topics or ():
            topics.append({"name": name})
            if version >= 10:
                topics[-1]["topic_id"] = None if topic_id == ZERO_UUID else topic_id
    value: dict[str, Any] = {"topics": topics}
    if version >= 4:
        value["allow_auto_topic_creation"] = request.allow_auto_topic_creation
    if 8 <= version <= 10:
        value["include_cluster_authorized_operations"] = (
            request.include_cluster_authorized_operations
        )
    if version >= 8:
        value["include_topic_authorized_operations"] = request.include_topic_authorized_operations
    return value


def api_versions_request_as_kio(request: Any, version: int) -> dict[str, Any]:
    values = {} if version < 3 else request._asdict()
    if version < 5:
        values = dict(list(values.items())[:2])
    return values


AS_KIO: dict[ApiKey, Callable[[Any, int], dict[str, Any]]] = {
    ApiKey.PRODUCE: produce_request_as_kio,
    ApiKey.FETCH: fetch_request_as_kio,
    ApiKey.METADATA: metadata_request_as_kio,
    ApiKey.API_VERSIONS: api_versions_request_as_kio,
}


def test_requests_are_parsed_as_kio_reads_them(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    maker = ValueMaker(budget.random, tame=True)
    for _ in budget.rounds():
        for key, version in CASES:
            message = request_message(key)
            data = encode_request(key, version, maker.message(message, version))
            parsed = PARSERS[key](memoryview(HEADER + data), len(HEADER), version)
            fields = AS_KIO[key](parsed, version)
            if kio_knows(key, version):
                expected = plain(read_by_kio(key, version, data, is_request=True))
            else:
                generic = decode_request(key, version, data)
                expected = {name: getattr(generic, name) for name in fields}
            assert fields == expected, f"{key.name} v{version} {budget.seed=}"


def produce_response(value: dict[str, Any], version: int) -> bytes:
    topics = [
        (
            ProduceTopic(topic.get("name", ""), topic.get("topic_id", ZERO_UUID), []),
            [
                PartitionResult(
                    row["index"],
                    row["error_code"],
                    row["base_offset"],
                    row["log_append_time_ms"],
                    row.get("log_start_offset", 77),
                    [
                        (error["batch_index"], error["batch_index_error_message"])
                        for error in row.get("record_errors", ())
                    ],
                    row.get("error_message"),
                    pair(row, "current_leader", ("leader_id", "leader_epoch")),
                )
                for row in topic["partition_responses"]
            ],
        )
        for topic in value["responses"]
    ]
    return encode_produce(version, topics, value["throttle_time_ms"], endpoints(value))


def pair(row: dict[str, Any], field: str, names: tuple[str, str]) -> tuple[int, int] | None:
    """Return a tagged struct of two numbers; the default, both -1, is not written."""
    if field not in row:
        return None
    values = tuple(row[field][name] for name in names)
    return None if values == (-1, -1) else values


def endpoints(value: dict[str, Any]) -> list[tuple[int, str, int, str | None]]:
    return [
        (row["node_id"], row["host"], row["port"], row["rack"])
        for row in value.get("node_endpoints", ())
    ]


def fetch_response(value: dict[str, Any], version: int) -> bytes:
    topics = [
        (
            topic.get("topic", ""),
            topic.get("topic_id", ZERO_UUID),
            [fetch_result(row) for row in topic["partitions"]],
        )
        for topic in value["responses"]
    ]
    pieces = encode_fetch(
        version,
        topics=topics,
        error_code=value.get("error_code", 0),
        session_id=value.get("session_id", 0),
        throttle_time_ms=value["throttle_time_ms"],
        node_endpoints=endpoints(value),
    )
    # Records are passed on as the same objects.
    payloads = [result.records for _, _, results in topics for result in results if result.records]
    assert [piece for piece in pieces if any(piece is payload for payload in payloads)] == payloads
    return b"".join(pieces)


def fetch_result(row: dict[str, Any]) -> FetchPartitionResult:
    aborted = row["aborted_transactions"]
    if aborted is not None:
        aborted = [(entry["producer_id"], entry["first_offset"]) for entry in aborted]
    return FetchPartitionResult(
        row["partition_index"],
        row["error_code"],
        row["high_watermark"],
        row["last_stable_offset"],
        row.get("log_start_offset", 77),
        pair(row, "diverging_epoch", ("epoch", "end_offset")),
        pair(row, "current_leader", ("leader_id", "leader_epoch")),
        pair(row, "snapshot_id", ("end_offset", "epoch")),
        aborted,
        row.get("preferred_read_replica", -1),
        row["records"],
    )


def metadata_response(value: dict[str, Any], version: int) -> bytes:
    topics = [
        encode_topic(
            version,
            TopicView(
                topic["name"],
                topic.get("topic_id", ZERO_UUID),
                topic.get("is_internal", False),
                [
                    PartitionView(
                        row["partition_index"],
                        row["leader_id"],
                        row.get("leader_epoch", 77),
                        row["replica_nodes"],
                        row["isr_nodes"],
                        row.get("offline_replicas", ()),
                        row["error_code"],
                    )
                    for row in topic["partitions"]
                ],
                topic["error_code"],
                topic.get("topic_authorized_operations", 77),
            ),
        )
        for topic in value["topics"]
    ]
    return b"".join(
        encode_metadata(
            version,
            brokers=[
                (row["node_id"], row["host"], row["port"], row.get("rack"))
                for row in value["brokers"]
            ],
            cluster_id=value.get("cluster_id"),
            controller_id=value.get("controller_id", -1),
            topics=topics,
            throttle_time_ms=value.get("throttle_time_ms", 0),
            cluster_authorized_operations=value.get("cluster_authorized_operations", 77),
            error_code=value.get("error_code", 0),
        )
    )


def api_versions_response(value: dict[str, Any], version: int) -> bytes:
    # Two rules of Kafka that the schema lacks: level 0 is not finalized, and before version 4 no
    # supported feature starts at 0.
    for row in value.get("finalized_features", ()):
        row["min_version_level"] = row["max_version_level"] = row["max_version_level"] or 1
    if version < 4 and "supported_features" in value:
        for row in value["supported_features"]:
            row["min_version"] = max(1, row["min_version"])
    return encode_api_versions(
        version,
        api_keys=[
            (row["api_key"], row["min_version"], row["max_version"]) for row in value["api_keys"]
        ],
        error_code=value["error_code"],
        throttle_time_ms=value.get("throttle_time_ms", 0),
        supported_features=[
            (row["name"], row["min_version"], row["max_version"])
            for row in value.get("supported_features", ())
        ],
        finalized_features=[
            (row["name"], row["max_version_level"]) for row in value.get("finalized_features", ())
        ],
        finalized_features_epoch=value.get("finalized_features_epoch", -1),
        zk_migration_ready=value.get("zk_migration_ready", False),
    )


ENCODERS: dict[ApiKey, Callable[[dict[str, Any], int], bytes]] = {
    ApiKey.PRODUCE: produce_response,
    ApiKey.FETCH: fetch_response,
    ApiKey.METADATA: metadata_response,
    ApiKey.API_VERSIONS: api_versions_response,
}


def test_responses_equal_the_generic_codecs_and_kio_reads_them(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    maker = ValueMaker(budget.random, tame=True)
    for _ in budget.rounds():
        for key, version in CASES:
            value = maker.message(response_message(key), version)
            encoded = ENCODERS[key](value, version)
            case = f"{key.name} v{version} {budget.seed=}"
            assert encoded == encode_response(key, version, value), case
            if not kio_knows(key, version):
                continue
            entity = read_by_kio(key, version, encoded, is_request=False)
            assert written_by_kio(key, version, entity, is_request=False) == encoded, case


def test_every_prefix_of_a_request_is_refused(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=2)
    maker = ValueMaker(budget.random, tame=True)
    for _ in budget.rounds():
        for key, version in CASES:
            data = encode_request(key, version, maker.message(request_message(key), version))
            for length in range(0, len(data), 1 + len(data) // 100):
                with pytest.raises(MalformedFrameError):
                    PARSERS[key](memoryview(data[:length]), 0, version)
            # like Kafka, it ignores trailing bytes
            PARSERS[key](memoryview(data + b"\x00"), 0, version)


def test_changed_request_is_refused_iff_the_generic_codec_refuses_it(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3)
    maker = ValueMaker(budget.random, most_elements=2)
    random = budget.random
    for _ in budget.rounds():
        for key, version in CASES:
            data = bytearray(
                encode_request(key, version, maker.message(request_message(key), version))
            )
            for _ in range(10 if data else 0):
                changed = data.copy()
                position = random.randrange(len(data))
                changed[position] = random.choice(
                    (0x00, 0x01, 0x7F, 0x80, 0xFF, random.randrange(256))
                )
                parsed = _request_or_none(key, version, bytes(changed))
                generic = _generic_or_none(key, version, bytes(changed))
                case = f"{key.name} v{version} {bytes(changed)!r} {budget.seed=}"
                assert (parsed is None) == (generic is None), case


def _request_or_none(key: ApiKey, version: int, data: bytes) -> Any:
    try:
        return PARSERS[key](memoryview(data), 0, version)
    except MalformedFrameError:
        return None


def _generic_or_none(key: ApiKey, version: int, data: bytes) -> Any:
    try:
        return decode_request(key, version, data)
    except MalformedFrameError:
        return None
