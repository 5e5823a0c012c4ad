"""Detection of what a user may not see of a cluster.

Metadata, ListGroups and ListTransactions silently omit it. DescribeLogDirs only requires Describe
on the cluster, and names all topics of a broker.

Source: Kafka's KafkaApis, KIP-113.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient


class Visibility(NamedTuple):
    """The extent of what a user can see.

    Attributes:
        is_whole: Whether the user may describe the cluster, so that lists of groups are complete.
        hidden_topics: Topics that the user may not describe, sorted.
    """

    is_whole: bool
    hidden_topics: tuple[str, ...]


async def visibility_of(client: KafkaClient) -> Visibility:
    """Return what the user can see; brokers that do not respond are ignored."""
    is_whole = True
    stored_topics: set[str] = set()
    for broker in await client.broker_ids():
        try:
            answer = await client.request_of(broker, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
        except ClientError:
            continue
        # Before version 3, a refusal is a response without directories.
        is_whole = is_whole and bool(answer.results)
        stored_topics |= {topic.name for directory in answer.results for topic in directory.topics}
    hidden: list[str] = []
    unseen = stored_topics - {topic.name for topic in (await client.metadata()).topics}
    if unseen:
        # Skip topics that were deleted meanwhile.
        hidden = [
            topic.name
            for topic in (await client.metadata(sorted(unseen))).topics
            if topic.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]
    return Visibility(is_whole, tuple(hidden))
