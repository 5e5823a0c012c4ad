"""A broker's whole contents as one value, for comparison after another broker has taken over."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from compat_tests.interchange.shared_folder import OFFSETS_PARTITIONS
from compat_tests.support.raw_requests import BROKER_RESOURCE, TOPIC_RESOURCE, Requests
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import iterate_batches

if TYPE_CHECKING:
    from collections.abc import Iterator

_EARLIEST, _LATEST, _MAX_TIMESTAMP = -2, -1, -3
# Sources of explicitly set values in DescribeConfigs.
_TOPIC_SOURCE, _BROKER_SOURCE, _CLUSTER_SOURCE = 1, 2, 3
_FETCH_BYTES = 64 << 20


class PartitionContents(NamedTuple):
    earliest: int
    latest: int
    max_timestamp: tuple[int, int]
    batches: bytes


class TopicContents(NamedTuple):
    topic_id: bytes
    configs: dict[str, str | None]
    partitions: dict[int, PartitionContents]


class Contents(NamedTuple):
    """Everything that clients can read and that a restart must not change."""

    topics: dict[str, TopicContents]
    configs: dict[str, dict[str, str | None]]
    offsets: dict[str, dict[tuple[str, int], tuple[int, str]]]


def contents_of(requests: Requests) -> Contents:
    request = {"topics": None, "allow_auto_topic_creation": False}
    answer = requests.ask_until_served(ApiKey.METADATA, 12, request)
    topics: dict[str, TopicContents] = {}
    for topic in answer.topics:
        if topic.is_internal:
            continue  # the serving broker writes to it
        requests.wait_for_partitions(topic.name, len(topic.partitions))
        topics[topic.name] = TopicContents(
            topic.topic_id,
            _configs(requests, TOPIC_RESOURCE, topic.name, {_TOPIC_SOURCE}),
            {
                partition.partition_index: _partition(
                    requests, topic.name, partition.partition_index
                )
                for partition in topic.partitions
            },
        )
    configs = {
        name: _configs(requests, BROKER_RESOURCE, name, {_BROKER_SOURCE, _CLUSTER_SOURCE})
        for name in ("", "1")
    }
    return Contents(topics, configs, dict(_groups(requests)))


def types_of_groups(requests: Requests) -> dict[str, str]:
    requests.wait_for_groups(OFFSETS_PARTITIONS)
    listed = requests.ask_until_served(ApiKey.LIST_GROUPS, 5, {})
    return {group.group_id: group.group_type.lower() for group in listed.groups}


def _configs(requests: Requests, kind: int, name: str, sources: set[int]) -> dict[str, str | None]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    answer = requests.ask(ApiKey.DESCRIBE_CONFIGS, 4, {"resources": [resource]})
    entries = answer.results[0].configs
    return {entry.name: entry.value for entry in entries if entry.config_source in sources}


def _partition(requests: Requests, topic: str, index: int) -> PartitionContents:
    earliest, _ = requests.offset(topic, index, _EARLIEST)
    latest, _ = requests.offset(topic, index, _LATEST)
    newest = requests.offset(topic, index, _MAX_TIMESTAMP)
    batches = read_batches(requests, topic, index, earliest, latest)
    return PartitionContents(earliest, latest, newest, batches)


def read_batches(requests: Requests, topic: str, index: int, start: int, end: int) -> bytes:
    """Fetch from one offset to another; the first batch is always whole."""
    return read_transactions(requests, topic, index, start, end, isolation_level=0)[0]


def read_transactions(
    requests: Requests, topic: str, index: int, start: int, end: int, *, isolation_level: int = 1
) -> tuple[bytes, set[tuple[int, int]]]:
    """Fetch as read_committed; return the batches and the aborted transactions among them.

    These are (producer id, first offset) each.
    """
    aborted: set[tuple[int, int]] = set()
    batches = bytearray()
    offset = start
    while offset < end:
        fetched = requests.fetch(topic, index, offset, isolation_level=isolation_level)
        data = memoryview(fetched.records or b"")
        size = 0
        for transaction in fetched.aborted_transactions or ():
            aborted.add((transaction.producer_id, transaction.first_offset))
        for position, header in iterate_batches(data):
            offset, size = header.last_offset + 1, position + header.size
        assert size, f"{topic}-{index} gives nothing at offset {offset} of {end}"
        batches += data[:size]
    return bytes(batches), aborted


def _groups(
    requests: Requests,
) -> Iterator[tuple[str, dict[tuple[str, int], tuple[int, str]]]]:
    requests.wait_for_groups(OFFSETS_PARTITIONS)
    listed = requests.ask_until_served(ApiKey.LIST_GROUPS, 5, {})
    for group in listed.groups:
        request = {"groups": [{"group_id": group.group_id, "topics": None}]}
        answer: Any = requests.ask_until_served(ApiKey.OFFSET_FETCH, 8, request)
        yield (
            group.group_id,
            {
                (topic.name, partition.partition_index): (
                    partition.committed_offset,
                    partition.metadata,
                )
                for topic in answer.groups[0].topics
                for partition in topic.partitions
            },
        )
