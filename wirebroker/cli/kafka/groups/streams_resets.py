"""`kafka-streams-groups --reset-offsets`."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.cli.kafka.groups.chosen_partitions import existing_partitions
from wirebroker.cli.kafka.groups.offset_resets import Reset
from wirebroker.cli.kafka.groups.reset_output import reset_csv, reset_table
from wirebroker.cli.kafka.groups.streams_internal_topics import internal_topics_of
from wirebroker.cli.kafka.plumbing.java_map import in_map_order
from wirebroker.cli.kafka.plumbing.java_words import thrown
from wirebroker.client.errors import ClientError
from wirebroker.client.groups.groups import commit, committed_of
from wirebroker.client.groups.streams_groups import describe_streams_group
from wirebroker.client.topics.topics import delete_topics
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from wirebroker.cli.kafka.groups.offset_resets import Scenario
    from wirebroker.cli.plumbing.output import Output
    from wirebroker.client.groups.streams_groups import DescribedStreamsGroup
    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.client.topics.leaders import TopicPartition

# A missing group is reset as well.
_MISSING: Final = "Missing"
_AT_REST: Final = frozenset({"Empty", "Dead", _MISSING})
_WIDTHS: Final = (30, 30, 10, 15)


async def input_offsets_of(client: KafkaClient, name: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets in its input topics.

    Raises:
        ClientError: The group does not exist; the message is that of Kafka's tool.
    """
    group = await _described(client, name)
    topics = {topic for subtopology in group.subtopologies for topic in subtopology.source_topics}
    return await _committed_in(client, name, topics)


async def _described(client: KafkaClient, name: str) -> DescribedStreamsGroup:
    try:
        return await describe_streams_group(client, name)
    except ClientError as error:
        if not error.code:
            raise
        raise ClientError(
            str(error),
            code=error.code,
            broker_message=f"java.util.concurrent.ExecutionException: {thrown(error)}",
        ) from None


async def _committed_in(
    client: KafkaClient, name: str, topics: Collection[str]
) -> dict[TopicPartition, int]:
    committed = await committed_of(client, name)
    return {place: offset for place, offset in committed.items() if place.topic in topics}


class StreamsReset(NamedTuple):
    """A reset of groups, as the flags of the tool describe it.

    Attributes:
        has_one_group: Whether lines of a file may lack the group.
        topics: Input topics, or `topic:0,1`; all input topics with `all_topics`.
        internal_topics: Internal topics to delete; all of the group with `all_internal_topics`.
    """

    scenario: Scenario
    has_one_group: bool
    topics: Sequence[str]
    all_topics: bool
    internal_topics: Sequence[str]
    all_internal_topics: bool
    execute: bool
    export: bool

    async def run(self, client: KafkaClient, out: Output, names: Sequence[str]) -> None:
        """Reset the groups, and print their new offsets."""
        goals: dict[str, dict[TopicPartition, int]] = {}
        for name in in_map_order(dict.fromkeys(names), str):
            state = await _state(client, name)
            if state not in _AT_REST:
                out.line(
                    f"\nError: Assignments can only be reset if the group '{name}' is inactive, but"
                    f" the current state is {state}."
                )
                goals[name] = {}
                continue
            goals[name] = await self._reset(client, out, name)
            if self.execute and state != _MISSING:
                await self._delete_topics(client, out, name)
        if self.export:
            lines = reset_csv(goals, has_group=not self.has_one_group)
        else:
            lines = reset_table(goals, _WIDTHS)
        for line in lines:
            out.line(line)

    async def _reset(
        self, client: KafkaClient, out: Output, name: str
    ) -> dict[TopicPartition, int]:
        partitions = await self._partitions(client, out, name)
        current = partial(_committed_in_sources, client, name)
        reset = Reset(name, self.scenario, current, self.has_one_group)
        goals = await reset.goals(client, out, partitions)
        if self.execute and goals:
            await commit(client, name, goals)
        return goals

    async def _partitions(
        self, client: KafkaClient, out: Output, name: str
    ) -> Sequence[TopicPartition]:
        if self.all_topics:
            return list(await input_offsets_of(client, name))
        chosen = await existing_partitions(client, self.topics)
        committed = await committed_of(client, name)
        if all(partition in committed for partition in chosen):
            return chosen
        out.line(f"\nError: One or more topics are not part of the group '{name}'.")
        return []

    async def _delete_topics(self, client: KafkaClient, out: Output, name: str) -> None:
        topics = self.internal_topics
        if self.all_internal_topics:
            topics = (await internal_topics_of(client, out, [name])).get(name, ())
        if not topics:
            return
        try:
            await delete_topics(client, topics)
        except ClientError as error:
            if not error.code:
                raise
            failure = f"\nError: Deleting internal topics for group '{name}' failed"
            if error.code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:
                out.line(f"{failure} because the topics do not exist.")
            else:
                out.line(f"{failure} due to {thrown(error)}")


async def _state(client: KafkaClient, name: str) -> str:
    try:
        return (await describe_streams_group(client, name)).state
    except ClientError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        return _MISSING


async def _committed_in_sources(client: KafkaClient, name: str) -> dict[TopicPartition, int]:
    """Return a group's committed offsets in topics that its tasks read."""
    return await _committed_in(client, name, (await _described(client, name)).source_topics())
