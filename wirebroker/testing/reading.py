"""The records of a topic: those that there are, or as many as somebody waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from wirebroker.clock import pause
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.testing.batch_reader import BatchReader
from wirebroker.testing.conversation import check
from wirebroker.testing.topics import count_partitions

if TYPE_CHECKING:
    from wirebroker.testing.conversation import Conversation, Patience
    from wirebroker.testing.topic_record import TopicRecord

# Later versions know topics by their ids.
_BY_NAME: Final = 12
# ListOffsets' names for the two ends.
_EARLIEST, _LATEST = -2, -1
_CONSUMER: Final = -1
_NO_SESSION: Final = -1
# What one Fetch may bring, of one partition and in all.
_PARTITION_BYTES, _ALL_BYTES = 1 << 20, 16 << 20
# How long one Fetch waits; who waits longer asks again.
_LONGEST_WAIT_S: Final = 0.5
_LOOK_AGAIN_S: Final = 0.01


async def read_all(
    conversation: Conversation, topic: str, patience: Patience, *, read_committed: bool
) -> list[TopicRecord]:
    """Return the records that a topic has now, in the order of partitions and offsets.

    Raises:
        KafkaError: There is no such topic, or it cannot be read.
    """
    reading = TopicReading(conversation, topic, read_committed=read_committed)
    await reading.read_all(patience)
    return reading.in_order()


async def read_until(
    conversation: Conversation, topic: str, patience: Patience, *, count: int, read_committed: bool
) -> list[TopicRecord]:
    """Return a topic's records, in that order, when there are so many.

    Raises:
        TimeoutError: There are fewer when the patience is over.
        KafkaError: The topic cannot be read.
    """
    reading = TopicReading(conversation, topic, read_committed=read_committed)
    if not await reading.read_until(count, patience):
        there = len(reading.records)
        raise TimeoutError(
            f"{topic} has {there} of {count} records after {patience.seconds:g} s"
            if reading.is_there
            else f"there is no topic {topic} after {patience.seconds:g} s"
        )
    return reading.in_order()


class TopicReading:
    """Reads one topic, all partitions at once, from where they begin.

    Attributes:
        records: What was read.
    """

    def __init__(self, conversation: Conversation, topic: str, *, read_committed: bool) -> None:
        self.records: list[TopicRecord] = []
        self._conversation = conversation
        self._topic = topic
        self._isolation = int(read_committed)
        self._readers: dict[int, BatchReader] = {}

    @property
    def is_there(self) -> bool:
        """Whether the topic was found."""
        return bool(self._readers)

    def in_order(self) -> list[TopicRecord]:
        """Return what was read, in the order of partitions and offsets."""
        return sorted(self.records, key=lambda record: (record.partition, record.offset))

    async def read_all(self, patience: Patience) -> None:
        """Read what there is now.

        Raises:
            KafkaError: There is no such topic, or it cannot be read.
            TimeoutError: No more of it comes.
        """
        partitions = await count_partitions(
            self._conversation, self._topic, patience, may_create=False
        )
        if partitions is None:
            what = f"there is no topic {self._topic}"
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, what)
        await self._begin(partitions, patience)
        ends = await self._offsets(_LATEST, partitions, patience)
        while any(reader.position < ends[each] for each, reader in self._readers.items()):
            before = [reader.position for reader in self._readers.values()]
            await self._fetch(patience)
            if not patience.left_s and before == [each.position for each in self._readers.values()]:
                raise TimeoutError(f"{self._topic} could not be read to its end")
        self.records = [each for each in self.records if each.offset < ends[each.partition]]

    async def read_until(self, count: int, patience: Patience) -> bool:
        """Read until there are so many records, waiting for them, and for the topic.

        Returns:
            Whether they came in time.
        """
        while not self._readers:
            partitions = await count_partitions(
                self._conversation, self._topic, patience, may_create=False
            )
            if partitions is not None:
                await self._begin(partitions, patience)
            elif not patience.left_s:
                return False
            else:
                await pause(_LOOK_AGAIN_S)
        while len(self.records) < count:
            is_last = not patience.left_s
            await self._fetch(patience)
            if is_last:
                break
        return len(self.records) >= count

    async def _begin(self, partitions: int, patience: Patience) -> None:
        starts = await self._offsets(_EARLIEST, partitions, patience)
        self._readers = {
            each: BatchReader(self._topic, each, position=start) for each, start in starts.items()
        }

    async def _offsets(self, which: int, partitions: int, patience: Patience) -> dict[int, int]:
        asked = [
            {"partition_index": each, "timestamp": which, "current_leader_epoch": -1}
            for each in range(partitions)
        ]
        request = {
            "replica_id": _CONSUMER,
            "isolation_level": self._isolation,
            "topics": [{"name": self._topic, "partitions": asked}],
        }
        while True:
            answer = await self._conversation.ask(ApiKey.LIST_OFFSETS, request, patience)
            found = answer.topics[0].partitions
            codes = [each.error_code for each in found if each.error_code]
            if codes and await self._conversation.is_worth_another_try(codes[0], patience):
                continue
            for each in found:
                check(each.error_code, f"the offsets of {self._topic}-{each.partition_index}")
            return {each.partition_index: each.offset for each in found}

    async def _fetch(self, patience: Patience) -> None:
        request = {
            "replica_id": _CONSUMER,
            "max_wait_ms": int(min(patience.left_s, _LONGEST_WAIT_S) * 1000),
            "min_bytes": 1,
            "max_bytes": _ALL_BYTES,
            "isolation_level": self._isolation,
            "session_epoch": _NO_SESSION,
            "topics": [{"topic": self._topic, "partitions": self._wanted()}],
        }
        answer = await self._conversation.ask(ApiKey.FETCH, request, patience, at_most=_BY_NAME)
        check(answer.error_code, f"reading {self._topic}")
        for topic in answer.responses:
            for each in topic.partitions:
                await self._take(each, patience)

    def _wanted(self) -> list[dict[str, int]]:
        return [
            {
                "partition": each,
                "current_leader_epoch": -1,
                "fetch_offset": reader.position,
                "log_start_offset": -1,
                "partition_max_bytes": _PARTITION_BYTES,
            }
            for each, reader in self._readers.items()
        ]

    async def _take(self, answer: Any, patience: Patience) -> None:
        """Take over what came of one partition."""
        reader = self._readers[answer.partition_index]
        code = answer.error_code
        if code == ErrorCode.OFFSET_OUT_OF_RANGE:
            # Its beginning was deleted meanwhile.
            starts = await self._offsets(_EARLIEST, len(self._readers), patience)
            reader.position = max(reader.position, starts[answer.partition_index])
        elif not code:
            aborted: list[Any] = answer.aborted_transactions or []
            self.records += reader.read(memoryview(answer.records or b""), aborted)
        elif not await self._conversation.is_worth_another_try(code, patience):
            check(code, f"reading {self._topic}-{answer.partition_index}")
