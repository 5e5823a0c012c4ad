"""The requests that tests send most, as dicts for the generic codec."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from tests.support.protocol.raw_client import RawClient

PRODUCE_VERSION = 12
FETCH_VERSION = 12
TOPIC_ID_VERSION = 13


def produce_request(
    records: Mapping[tuple[str, int], bytes | None],
    *,
    acks: int = -1,
    transactional_id: str | None = None,
    timeout_ms: int = 30_000,
) -> dict[str, Any]:
    topics: dict[str, list[dict[str, Any]]] = {}
    for (topic, index), batch in records.items():
        topics.setdefault(topic, []).append({"index": index, "records": batch})
    return {
        "transactional_id": transactional_id,
        "acks": acks,
        "timeout_ms": timeout_ms,
        "topic_data": [
            {"name": topic, "partition_data": partitions} for topic, partitions in topics.items()
        ],
    }


def fetch_request(
    offsets: Mapping[tuple[Any, int], int],
    *,
    max_wait_ms: int = 0,
    min_bytes: int = 1,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 1 << 20,
    session: tuple[int, int] = (0, -1),
    forgotten: Iterable[tuple[str | bytes, int]] = (),
    isolation_level: int = 0,
    **partition_fields: int,
) -> dict[str, Any]:
    """Return a Fetch request.

    Args:
        offsets: Fetch offsets by (topic name or id, partition).
        max_wait_ms: As in the request, like the next two.
        min_bytes: …
        max_bytes: …
        partition_max_bytes: For each partition.
        session: Id and epoch; the default requests no session.
        forgotten: Partitions to remove from the session.
        isolation_level: 1 is read_committed.
        partition_fields: More fields of each partition.
    """
    topics: dict[str | bytes, list[dict[str, Any]]] = {}
    for (topic, index), offset in offsets.items():
        partition = {"partition": index, "fetch_offset": offset, **partition_fields}
        partition["partition_max_bytes"] = partition_max_bytes
        topics.setdefault(topic, []).append(partition)
    dropped: dict[str | bytes, list[int]] = {}
    for topic, index in forgotten:
        dropped.setdefault(topic, []).append(index)
    return {
        "max_wait_ms": max_wait_ms,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": isolation_level,
        "session_id": session[0],
        "session_epoch": session[1],
        "topics": [
            {**_named(topic), "partitions": partitions} for topic, partitions in topics.items()
        ],
        "forgotten_topics_data": [
            {**_named(topic), "partitions": indexes} for topic, indexes in dropped.items()
        ],
    }


def _named(topic: str | bytes) -> dict[str, Any]:
    return {"topic": topic} if isinstance(topic, str) else {"topic_id": topic}


async def create_topic(
    client: RawClient, name: str, partitions: int = 1, /, **configs: str
) -> bytes:
    """Create a topic and return its id; `_` in a config's name means a dot."""
    topic = {
        "name": name,
        "num_partitions": partitions,
        "replication_factor": 1,
        "configs": [
            {"name": key.replace("_", "."), "value": value} for key, value in configs.items()
        ],
    }
    request = {"topics": [topic], "timeout_ms": 30_000}
    answer = await client.ask(ApiKey.CREATE_TOPICS, 7, request)
    assert answer.topics[0].error_code == 0, answer.topics[0].error_message
    topic_id: bytes = answer.topics[0].topic_id
    return topic_id


async def delete_topic(client: RawClient, name: str) -> None:
    request = {"topics": [{"name": name}], "timeout_ms": 30_000}
    answer = await client.ask(ApiKey.DELETE_TOPICS, 6, request)
    assert answer.responses[0].error_code == 0


async def append(client: RawClient, topic: str, records: bytes, *, partition: int = 0) -> int:
    result = await produce(client, topic, records, partition=partition)
    assert result.error_code == 0, result
    base_offset: int = result.base_offset
    return base_offset


async def produce(
    client: RawClient,
    topic: str,
    records: bytes | None,
    *,
    partition: int = 0,
    acks: int = -1,
    version: int = PRODUCE_VERSION,
) -> Any:
    request = produce_request({(topic, partition): records}, acks=acks)
    answer = await client.ask(ApiKey.PRODUCE, version, request)
    (of_topic,) = answer.responses
    (result,) = of_topic.partition_responses
    return result


async def fetch(client: RawClient, topic: str, offset: int, *, partition: int = 0, **fields: Any):
    request = fetch_request({(topic, partition): offset}, **fields)
    answer = await client.ask(ApiKey.FETCH, FETCH_VERSION, request)
    (of_topic,) = answer.responses
    (result,) = of_topic.partitions
    return result
