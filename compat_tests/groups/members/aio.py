"""A group member on aiokafka.

Rebalances run concurrently, so the listener waits until the current records are committed, as in
aiokafka's documentation.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiokafka import AIOKafkaConsumer, ConsumerRebalanceListener
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import KafkaError

from compat_tests.groups.members.speaking import Settings, Speaker, leave_command, settings_of

ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}


class Listener(ConsumerRebalanceListener):
    def __init__(self, speaker: Speaker, processing: asyncio.Lock) -> None:
        self.speaker = speaker
        self.processing = processing

    async def on_partitions_revoked(self, revoked: Any) -> None:
        async with self.processing:
            self.speaker.revoked(topic_partition.partition for topic_partition in revoked)

    async def on_partitions_assigned(self, assigned: Any) -> None:
        self.speaker.assigned(topic_partition.partition for topic_partition in assigned)


def make_consumer(settings: Settings) -> AIOKafkaConsumer:
    return AIOKafkaConsumer(
        bootstrap_servers=settings.bootstrap,
        group_id=settings.group,
        group_instance_id=settings.instance_id,
        partition_assignment_strategy=[ASSIGNORS[name] for name in settings.assignors],
        session_timeout_ms=settings.session_ms,
        heartbeat_interval_ms=settings.heartbeat_ms,
        rebalance_timeout_ms=max(10_000, settings.session_ms),
        auto_offset_reset="earliest",
        enable_auto_commit=False,
        fetch_max_wait_ms=100,
    )


async def process(consumer: AIOKafkaConsumer, speaker: Speaker, processing: asyncio.Lock) -> None:
    polled = await consumer.getmany(timeout_ms=50)  # without the lock: it waits for a rebalance
    async with processing:
        done: dict[Any, int] = {}
        for partition, records in polled.items():
            for record in records:
                speaker.record(record.partition, record.offset)
                done[partition] = record.offset + 1
        if done:
            try:
                await consumer.commit(done)
            except KafkaError as error:
                speaker.error(error)
            else:
                speaker.committed(
                    {topic_partition.partition: offset for topic_partition, offset in done.items()}
                )


async def run(settings: Settings) -> None:
    speaker = Speaker(settings.name)
    leave = leave_command()
    processing = asyncio.Lock()
    consumer = make_consumer(settings)
    consumer.subscribe([settings.topic], listener=Listener(speaker, processing))
    await consumer.start()
    while not leave.is_set():
        await process(consumer, speaker, processing)
    await consumer.stop()
    speaker.left()


if __name__ == "__main__":
    asyncio.run(run(settings_of()))
