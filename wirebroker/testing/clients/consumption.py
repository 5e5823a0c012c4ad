"""A check whether a group has committed all records of a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.client.groups.groups import committed_of
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.testing.clients.reading import read_all

if TYPE_CHECKING:
    from wirebroker.client.kafka_client import KafkaClient

_LOOK_AGAIN_S: Final = 0.02


async def consumed_until(
    client: KafkaClient, topic: str, group: str, timeout_s: float, *, read_committed: bool
) -> list[str]:
    """Wait until a group has committed all records of a topic; return lines about missing ones.

    Transaction markers do not count: clients may commit them or not.
    """
    end = client.clock.monotonic() + timeout_s
    while True:
        records = await read_all(client, topic, read_committed=read_committed)
        committed = await committed_of(client, group)
        missing: list[str] = []
        for index in sorted({record.partition for record in records}):
            offsets = [record.offset for record in records if record.partition == index]
            committed_offset = committed.get(TopicPartition(topic, index))
            remaining = sum(
                1 for offset in offsets if committed_offset is None or offset >= committed_offset
            )
            if remaining:
                how_far = (
                    "nothing is committed"
                    if committed_offset is None
                    else f"committed up to offset {committed_offset}"
                )
                missing.append(
                    f"  {topic}-{index}: {how_far}, {remaining} of {len(offsets)} are left"
                )
        if not missing or client.clock.monotonic() >= end:
            return missing
        await pause(_LOOK_AGAIN_S)
