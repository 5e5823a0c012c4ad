"""What a user may not see of a cluster: a list without it looks like one that is whole.

Metadata, ListGroups and ListTransactions leave out what a user may not describe, and say nothing of
it. DescribeLogDirs asks for Describe on the cluster alone, and names every topic that a broker has.

Source: Kafka's KafkaApis (which operations each request needs), KIP-113.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from wirebroker.client.errors import ClientError
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient


class Sight(NamedTuple):
    """How far a user sees.

    Attributes:
        is_whole: Whether the cluster may be described, so that lists of groups are whole.
        hidden_topics: Names of topics that are there and may not be described, in order.
    """

    is_whole: bool
    hidden_topics: tuple[str, ...]


async def sight_of(client: KafkaClient) -> Sight:
    """Find out what the user sees. A broker that doesn't answer is asked for nothing.

    Raises:
        ClientError: No broker answers.
    """
    is_whole = True
    kept: set[str] = set()
    for broker in await client.broker_ids():
        try:
            answer = await client.request_of(broker, ApiKey.DESCRIBE_LOG_DIRS, {"topics": None})
        except ClientError:
            continue
        # Before version 3 a refusal is an answer without any directory.
        is_whole = is_whole and bool(answer.results)
        kept |= {topic.name for each in answer.results for topic in each.topics}
    hidden: list[str] = []
    unseen = kept - {each.name for each in (await client.metadata()).topics}
    if unseen:
        # Not one that has been deleted meanwhile.
        hidden = [
            each.name
            for each in (await client.metadata(sorted(unseen))).topics
            if each.error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED
        ]
    return Sight(is_whole, tuple(hidden))
