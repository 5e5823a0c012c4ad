"""OffsetCommit: stores a group's offsets.

v9 GROUP_ID_NOT_FOUND (KIP-848), v10 topic ids instead of names (KIP-516).

Source: Kafka's KafkaApis.handleOffsetCommitRequest, GroupCoordinatorService.commitOffsets; KIP-211,
KIP-320, KIP-345.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from wirebroker.api.groups.chunked_commit import (
    Topics,
    Valid,
    chunked_commits,
    merged,
    names_many,
    sort_topic,
    sort_topics,
    with_error,
)
from wirebroker.api.groups.group_errors import response_of
from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices, in_one_go, next_turn
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.permissions import READ_GROUP, READ_TOPIC
from wirebroker.coordinator.groups.shard import offsets as group_offsets
from wirebroker.coordinator.groups.shard.offsets import Commit
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.base.clock import Steps
    from wirebroker.codecs.errors import ErrorCode
    from wirebroker.request.request import Request

FIRST_TOPIC_ID_VERSION = 10


@handles(ApiKey.OFFSET_COMMIT, permissions=(READ_GROUP, READ_TOPIC), cost=Cost.LOG)
def offset_commit(
    broker: Broker, request: Request, body: Any
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Store the offsets of existing partitions."""
    by_id = request.version >= FIRST_TOPIC_ID_VERSION
    if names_many(body.topics):
        return _commit_in_parts(broker, request.version, body, by_id=by_id)
    valid: Valid = []
    refused: Topics = []
    image = broker.metadata.image
    for topic in body.topics:
        sort_topic(image, topic, topic.partitions, valid, refused, by_id)
    if not valid:
        return {"topics": refused}
    commit = Commit(body, request.version, valid)
    if refused or len(valid) > 1:
        return _commit_mixed(broker, commit, refused, by_id=by_id)
    return broker.groups.submit(
        body.group_id, group_offsets.commit, commit, on_error=partial(_refused, valid)
    )


def _commit_mixed(
    broker: Broker, commit: Commit, refused: Topics, *, by_id: bool
) -> Mapping[str, Any] | Awaitable[Mapping[str, Any]]:
    """Store the offsets of several topics, or add the partitions that do not exist."""

    def finish(answer: Mapping[str, Any]) -> Mapping[str, Any]:
        return in_one_go(_merge(refused, answer["topics"], by_id=by_id))

    return broker.groups.submit(
        commit.body.group_id,
        group_offsets.commit,
        commit,
        on_error=lambda error: finish(_refused(commit.topics, error)),
        finish=finish,
    )


async def _commit_in_parts(
    broker: Broker, version: int, body: Any, *, by_id: bool
) -> Mapping[str, Any]:
    """Store many offsets; a rebalance meanwhile refuses only the later partitions."""
    slices = Slices(broker.clock)
    valid, refused = await slices.run(sort_topics(broker.metadata.image, body.topics, by_id=by_id))
    topics: Topics = []
    for part in chunked_commits(valid):
        result = broker.groups.submit(
            body.group_id,
            group_offsets.commit,
            Commit(body, version, part),
            on_error=partial(_refused, part),
        )
        topics += (await response_of(result))["topics"]
        await next_turn()
    return await slices.run(_merge(refused, topics, by_id=by_id))


def _refused(part: Valid, error: ErrorCode) -> dict[str, Any]:
    return {"topics": in_one_go(with_error(part, error))}


def _merge(refused: Topics, stored: Topics, *, by_id: bool) -> Steps[dict[str, Any]]:
    if not refused and len(stored) == 1:
        return {"topics": stored}
    return {"topics": (yield from merged(refused, stored, "topic_id" if by_id else "name"))}
