"""Lookup of topics by name, created on first use if the cluster does that."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.client.configs.configs import BROKER, configs_of
from wirebroker.client.errors import PASSING, ClientError, check, did_you_mean
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from wirebroker.client.kafka_client import KafkaClient

_UNKNOWN: Final = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
_MAKES_TOPICS: Final = "auto.create.topics.enable"
# The user may not be allowed to read the setting. While the cluster creates a topic, it responds as
# if it creates none; after this time, that is assumed.
_CREATION_S: Final = 3.0


async def find_topics(
    client: KafkaClient, names: Sequence[str], *, may_create: bool = False
) -> list[Any]:
    """Return the metadata of existing topics with leaders, in this order.

    `may_create` lets the cluster create missing topics.

    Raises:
        ClientError: A topic does not exist (UNKNOWN_TOPIC_OR_PARTITION), or has no leader after the
            client's timeout.
    """
    topics: dict[str, Any] = {}
    makes_topics = None if may_create else False
    deadline = client.clock.monotonic()
    async for _ in client.tries():
        answer = await client.metadata(names, may_create=may_create)
        topics = {topic.name: topic for topic in answer.topics}
        missing = [name for name in names if topics[name].error_code == _UNKNOWN]
        if missing and makes_topics is None:
            makes_topics = await _makes_topics(client, answer.brokers)
            if makes_topics is None:
                makes_topics = True
                deadline += _CREATION_S
            elif makes_topics:
                deadline += client.timeout_s
        if missing and (not makes_topics or client.clock.monotonic() >= deadline):
            raise await _no_such_topic(client, missing[0], is_wanted=may_create)
        if not missing and not any(_is_unsettled(topic) for topic in topics.values()):
            break
    for name in names:
        check(topics[name].error_code, f"topic {name} cannot be used")
    return [topics[name] for name in names]


async def _makes_topics(client: KafkaClient, brokers: Sequence[Any]) -> bool | None:
    """Return whether the cluster creates topics on first use, or None."""
    if not brokers:
        return None
    broker = str(brokers[0].node_id)
    try:
        configs = await configs_of(client, BROKER, broker, names=[_MAKES_TOPICS])
    except ClientError as error:
        if not error.code:
            raise
        return None
    return next(
        (config.value == "true" for config in configs if config.name == _MAKES_TOPICS), None
    )


async def _no_such_topic(client: KafkaClient, name: str, *, is_wanted: bool) -> ClientError:
    """Return the error, with the command that creates a wanted topic."""
    topic_names = [topic.name for topic in (await client.metadata()).topics]
    hint = did_you_mean(name, topic_names)
    if not hint and is_wanted:
        hint = f"; `wirebroker topic create {name}` creates it"
    return ClientError(f"there is no topic {name}{hint}", code=_UNKNOWN)


def _is_unsettled(topic: Any) -> bool:
    return topic.error_code in PASSING or any(
        partition.error_code in PASSING or partition.leader_id < 0 for partition in topic.partitions
    )
