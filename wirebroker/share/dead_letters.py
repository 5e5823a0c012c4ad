"""Writes records that share groups could not process to their dead-letter topics (KIP-1191).

A failure is logged and not repeated by the caller: the records are archived anyway, as in Kafka.

Source: Kafka's ShareGroupDLQStateManager.
"""

from __future__ import annotations

import logging
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Final

from wirebroker.base.clock import pause
from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.share.dead_letter_records import (
    Origin,
    Originals,
    dead_letter_batch,
    each_record,
    originals_in,
)
from wirebroker.share.dead_letter_topic import (
    create_topic,
    destination,
    settings_of,
    topic_problem,
)
from wirebroker.storage.files import ColdPagesError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from wirebroker.base.clock import Clock
    from wirebroker.base.metrics import Metrics
    from wirebroker.coordinator.share_partitions.share_configs import ShareConfigs
    from wirebroker.coordinator.share_partitions.state_change import DeadRecords
    from wirebroker.coordinator.share_state.state import SharePartitionKey
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.replica.partition import Partition
    from wirebroker.share.dead_letter_records import DeadRecord
    from wirebroker.share.dead_letter_sender import DeadLetterSender
    from wirebroker.storage.files import FileSlice

logger = logging.getLogger(__name__)

_MOST_RECORDS: Final = 2_000  # of one batch
_MOST_READ_BYTES: Final = 1 << 20
_MOST_ATTEMPTS: Final = 5
_FIRST_DELAY_S: Final = 1.0
_LONGEST_DELAY_S: Final = 30.0
_JITTER: Final = 0.2
_RETRIABLE: Final = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REQUEST_TIMED_OUT,
        ErrorCode.THROTTLING_QUOTA_EXCEEDED,
        ErrorCode.TOPIC_ALREADY_EXISTS,
    }
)


class DeadLetters:
    """The dead letters of all share groups on this node."""

    __slots__ = ("_clock", "_configs", "_controller", "_metrics", "_random", "_sender")

    def __init__(
        self,
        configs: ShareConfigs,
        *,
        controller: ControllerChannel,
        sender: DeadLetterSender,
        clock: Clock,
        metrics: Metrics,
        random: Random | None = None,
    ) -> None:
        self._configs = configs
        self._controller = controller
        self._sender = sender
        self._clock = clock
        self._metrics = metrics
        self._random = random or Random()  # noqa: S311

    async def write(
        self, key: SharePartitionKey, partition: Partition, dead: Sequence[DeadRecords]
    ) -> None:
        """Write the dead letters of records of one partition; log a failure."""
        records = each_record(dead)
        written = 0
        try:
            while batch := list(islice(records, _MOST_RECORDS)):
                while batch:
                    count = await self._write_some(key, partition, batch)
                    written += count
                    del batch[:count]
        except KafkaError as error:
            total = sum(part.state.count for part in dead)
            self._metrics.failed_dead_letters += total - written
            logger.error(  # noqa: TRY400 - a refusal, not a bug
                "%d records of %s are archived without a dead letter: %s",
                total - written,
                key,
                error,
            )
        self._metrics.dead_letters += written

    async def _write_some(
        self, key: SharePartitionKey, partition: Partition, records: Sequence[DeadRecord]
    ) -> int:
        """Write one batch of records in the order of offsets; return the number of its records."""
        topic = self._configs.of(key.group_id).dead_letter_topic
        config, image = self._configs.config, self._configs.image
        problem = topic_problem(config, image, key.group_id, topic)
        if problem is not None:
            raise KafkaError(ErrorCode.INVALID_CONFIG, problem)
        max_bytes = settings_of(config, image, topic).max_message_bytes
        originals = await self._originals(key, partition, records, max_bytes)
        read = [record for record in records if record.offset <= originals.last_offset]
        batch, count = await in_thread(
            Work.CODING,
            dead_letter_batch,
            Origin(key.group_id, partition.topic, key.partition),
            read or records,
            originals.records,
            self._clock.now_ms(),
            max_bytes,
        )
        await self._retried(lambda: self._send(topic, key.partition, batch))
        return count

    async def _send(self, topic: str, source_index: int, batch: bytearray) -> None:
        if topic not in self._configs.image.topics:
            await create_topic(self._controller, topic)
        found = destination(self._configs.image, topic, source_index)
        if found is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        await self._sender.send(self._configs.image.topics[topic], found, batch)

    async def _retried(self, attempt: Callable[[], Awaitable[None]]) -> None:
        delay_s = _FIRST_DELAY_S
        for left in reversed(range(_MOST_ATTEMPTS)):
            try:
                await attempt()
            except KafkaError as error:
                if error.code not in _RETRIABLE or not left:
                    raise
            else:
                return
            await pause(delay_s * self._random.uniform(1 - _JITTER, 1 + _JITTER))
            delay_s = min(2 * delay_s, _LONGEST_DELAY_S)

    async def _originals(
        self,
        key: SharePartitionKey,
        partition: Partition,
        records: Sequence[DeadRecord],
        max_bytes: int,
    ) -> Originals:
        """Return the keys and values for dead letters; records that cannot be read have none."""
        first_offset, last_offset = records[0].offset, records[-1].offset
        nothing = Originals({}, last_offset)
        if not self._configs.of(key.group_id).copies_dead_records:
            return nothing
        try:
            found = await _read(partition, first_offset)
            if found is None:
                return nothing
            return await in_thread(
                Work.CODING, _decode, found, first_offset, last_offset, max_bytes
            )
        except (KafkaError, OSError) as error:
            logger.warning("cannot copy records of %s to dead letters: %s", partition, error)
            return nothing


async def _read(partition: Partition, offset: int) -> FileSlice | None:
    partition.check_leader()
    try:
        return _slice(partition, offset, may_block=False)
    except ColdPagesError as cold:
        await in_thread(Work.WARMING, cold.file.warm, cold.position, _MOST_READ_BYTES)
        return _slice(partition, offset, may_block=True)


def _slice(partition: Partition, offset: int, *, may_block: bool) -> FileSlice | None:
    log = partition.log
    read = log.read(
        offset,
        _MOST_READ_BYTES,
        up_to_offset=log.high_watermark,
        min_one=True,
        may_block=may_block,
    )
    return read.slice


def _decode(found: FileSlice, first_offset: int, last_offset: int, max_bytes: int) -> Originals:
    return originals_in(found.read(), first_offset, last_offset, max_bytes)
