"""Creation, change and deletion of topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.text import counted, few_of
from wirebroker.client.errors import ClientError, check, check_all, with_text
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient

# Last version of DeleteTopics with names only.
_BY_NAME: Final = 5
_UNKNOWN: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
# Names in the error of a change.
_MOST_NAMED: Final = 20


async def create_topics(
    client: KafkaClient,
    partitions: Mapping[str, int],
    *,
    replication_factor: int = -1,
    configs: Mapping[str, str],
    assignment: Sequence[Sequence[int]] = (),
    may_exist: bool = False,
    validate_only: bool = False,
) -> list[str]:
    """Create topics, with configs, and return their names when they have leaders.

    The numbers of partitions and the replication factor are -1 for the brokers' defaults, and must
    be -1 with an assignment: the brokers of each partition, the preferred leader first. With
    `may_exist`, existing topics are skipped. With `validate_only` nothing is created.

    Raises:
        ClientError: A topic cannot be created; earlier ones are.
    """
    rows = [
        {
            "name": name,
            "num_partitions": count,
            "replication_factor": replication_factor,
            "assignments": [
                {"partition_index": index, "broker_ids": list(brokers)}
                for index, brokers in enumerate(assignment)
            ],
            "configs": [{"name": key, "value": value} for key, value in configs.items()],
        }
        for name, count in partitions.items()
    ]
    answer = await client.request_of_controller(
        ApiKey.CREATE_TOPICS,
        {"topics": rows, "timeout_ms": _timeout_ms(client), "validate_only": validate_only},
    )
    results = {topic.name: topic for topic in answer.topics}
    created: list[str] = []
    for name in partitions:
        row = results[name]
        if may_exist and row.error_code == ErrorCode.TOPIC_ALREADY_EXISTS:
            continue
        message = getattr(row, "error_message", None)
        check(row.error_code, f"topic {name} cannot be created", message)
        created.append(name)
    if not validate_only:
        await _await_metadata(client, created, 1)
    return created


async def list_topics(client: KafkaClient) -> dict[str, int]:
    """Return each topic's number of partitions, by name, without internal topics."""
    topics = [topic for topic in (await client.metadata()).topics if not topic.is_internal]
    return {
        topic.name: len(topic.partitions) for topic in sorted(topics, key=lambda topic: topic.name)
    }


async def add_partitions(
    client: KafkaClient,
    topic: str,
    count: int,
    *,
    assignment: Sequence[Sequence[int]] = (),
    validate_only: bool = False,
) -> None:
    """Increase a topic's number of partitions to `count`.

    `assignment` has the brokers of each new partition; if it is empty, the cluster chooses. With
    `validate_only` nothing is changed.
    """
    rows = [{"broker_ids": list(brokers)} for brokers in assignment]
    answer = await client.request_of_controller(
        ApiKey.CREATE_PARTITIONS,
        {
            "topics": [{"name": topic, "count": count, "assignments": rows or None}],
            "timeout_ms": _timeout_ms(client),
            "validate_only": validate_only,
        },
    )
    (row,) = answer.results
    check(
        row.error_code,
        f"topic {topic} cannot have {counted(count, 'partition')}",
        row.error_message,
    )
    if not validate_only:
        await _await_metadata(client, [topic], count)


async def delete_topics(client: KafkaClient, names: Sequence[str]) -> None:
    """Delete topics.

    Raises:
        ClientError: A topic cannot be deleted; the message names the first 20 that were not deleted
            and says how many others were.
    """
    answer = await client.request_of_controller(
        ApiKey.DELETE_TOPICS,
        {"topic_names": list(names), "timeout_ms": _timeout_ms(client)},
        at_most=_BY_NAME,
    )
    results = [
        (
            row.error_code,
            f"topic {row.name} cannot be deleted",
            getattr(row, "error_message", None),
        )
        for row in answer.responses
    ]
    failed = [row.name for row in answer.responses if row.error_code]
    try:
        check_all(results, "other topic", "deleted")
    except ClientError as error:
        if len(failed) == 1:
            raise
        raise with_text(error, f"not deleted: {few_of(failed, _MOST_NAMED)}") from None
    await _await_metadata(client, names, 0)


async def _await_metadata(client: KafkaClient, names: Sequence[str], at_least: int) -> None:
    """Wait until brokers know of a change, which with KRaft is later than the response.

    Topics must have `at_least` partitions with leaders, or with 0 be deleted.
    """
    async for _ in client.tries():
        answer = await client.metadata(names)
        if at_least == 0:
            if all(topic.error_code == _UNKNOWN for topic in answer.topics):
                return
        elif all(
            len(topic.partitions) >= at_least
            and all(partition.leader_id >= 0 for partition in topic.partitions)
            for topic in answer.topics
        ):
            return


def _timeout_ms(client: KafkaClient) -> int:
    return int(client.timeout_s * 1000)
