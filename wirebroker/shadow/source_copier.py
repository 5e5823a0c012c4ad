"""Copying of all partitions of a source.

A partition ends if it was deleted or recreated, or if the source has lost copied records. Other
errors are retried forever, or with `is_once` until the client's timeout.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from wirebroker.base.clock import pause
from wirebroker.client.errors import PASSING, ClientError, explained
from wirebroker.client.topics.leaders import TopicPartition, offsets_at
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.primitives import uuid_text
from wirebroker.codecs.special_offsets import EARLIEST, LATEST
from wirebroker.config import StartError
from wirebroker.shadow.copied_partition import CopiedPartition

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.shadow.copy_directory import CopyDirectory
    from wirebroker.shadow.source import Source, SourceTopic

LOGGER = logging.getLogger("wirebroker")

_ANSWER_BYTES: Final = 8 << 20
_PARTITION_BYTES: Final = 1 << 20
_WAIT_MS: Final = 500
_AGAIN_S: Final = 0.2
# Between two lookups of topics and leaders.
_LOOK_S: Final = 5.0
_FIRST_BY_ID: Final = 13
_MOVED: Final = PASSING | {
    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
    ErrorCode.UNKNOWN_TOPIC_ID,
    ErrorCode.INCONSISTENT_TOPIC_ID,
    ErrorCode.KAFKA_STORAGE_ERROR,
}


class SourceCopier:
    """All partitions of a copy, which with `is_once` ends at the source's first end offsets."""

    def __init__(
        self,
        source: Source,
        directory: CopyDirectory,
        *,
        clock: Clock,
        is_once: bool,
        cluster_id: str,
    ) -> None:
        self.cluster_id = cluster_id
        self.partitions: dict[TopicPartition, CopiedPartition] = {}
        self._source = source
        self._directory = directory
        self._clock = clock
        self._is_once = is_once
        self._ids: dict[str, bytes] = {}
        self._failing_since: float | None = None
        self._has_logged = False

    async def run(self) -> None:
        """Copy until every partition has ended; without `is_once`, wait for new ones.

        Raises:
            ClientError: The source does not respond, or returns an error.
            StartError: A topic was recreated since it was copied.
            OSError, KafkaError: The disk failed, or a log is corrupt.
        """
        while True:
            try:
                topics = await self._source.topics()
                await self._take_on(topics)
                self._give_up()
                if self._is_once and not self._followed():
                    return
                await self._follow(topics)
                self._failing_since = None
            except ClientError as error:
                if not self._continues():
                    raise
                LOGGER.info("retrying: %s", error)
                # The next leader to respond may have other data.
                for copied in self._followed():
                    copied.compare_again()
                await pause(_AGAIN_S)

    def _followed(self) -> list[CopiedPartition]:
        return [copied for copied in self.partitions.values() if copied.is_followed]

    def _continues(self) -> bool:
        now = self._clock.monotonic()
        if self._failing_since is None:
            self._failing_since = now
        return not self._is_once or now - self._failing_since < self._source.client.timeout_s

    def _give_up(self) -> None:
        """End or report the partitions without progress for the client's timeout."""
        since = self._clock.monotonic() - self._source.client.timeout_s
        for copied in self._followed():
            if copied.waits.have_lasted_since(since):
                if self._is_once:
                    copied.state = copied.waits.reason
                elif copied.waits.should_log():
                    LOGGER.warning("%s-%d: %s", *copied.place, copied.waits.reason)

    # -- topics ----------------------------------------------------------------------------

    async def _take_on(self, topics: Iterable[SourceTopic]) -> None:
        by_name = {topic.name: topic for topic in topics}
        for copied in self._followed():
            topic = by_name.get(copied.place.topic)
            if topic is None:
                if not self._is_once:
                    copied.state = "its topic was deleted or is no longer visible"
            elif topic.topic_id != self._ids[topic.name]:
                copied_id = uuid_text(self._ids[topic.name])
                copied.state = (
                    f"its topic was recreated: the copy has topic id {copied_id}, the topic now "
                    f"has {uuid_text(topic.topic_id)}; copy it into another directory"
                )
        fresh = [topic for topic in by_name.values() if self._is_new(topic)]
        if not fresh:
            return
        described = [await self._source.with_configs(topic) for topic in fresh]
        copied_topics = self._directory.image.topics
        accepted: list[SourceTopic] = []
        for topic in described:
            if topic.name in copied_topics and copied_topics[topic.name].topic_id != topic.topic_id:
                copied_id = uuid_text(copied_topics[topic.name].topic_id)
                raise StartError(
                    f"topic {topic.name} was recreated since it was copied: the copy has topic "
                    f"id {copied_id}, the topic now has {uuid_text(topic.topic_id)}",
                    "copy it into another directory, or exclude it",
                )
            accepted.append(topic)
        await self._directory.put_topics(accepted)
        await self._open(accepted)

    def _is_new(self, topic: SourceTopic) -> bool:
        known_id = self._ids.get(topic.name)
        if known_id is not None and known_id != topic.topic_id:
            return False
        return any(
            TopicPartition(topic.name, partition) not in self.partitions
            for partition in topic.leaders
        )

    async def _open(self, topics: Iterable[SourceTopic]) -> None:
        topic_partitions = [
            TopicPartition(topic.name, index)
            for topic in topics
            for index in sorted(topic.leaders)
            if TopicPartition(topic.name, index) not in self.partitions
        ]
        client = self._source.client
        starts = await offsets_at(client, dict.fromkeys(topic_partitions, EARLIEST))
        ends = await offsets_at(client, dict.fromkeys(topic_partitions, LATEST))
        for topic in topics:
            self._ids[topic.name] = topic.topic_id
        image = self._directory.image
        for topic_partition in topic_partitions:
            of_copy = image.topics[topic_partition.topic]
            copied = CopiedPartition(
                self._directory.open_log(of_copy, topic_partition.partition),
                clock=self._clock,
                leader_epoch=of_copy.partitions[topic_partition.partition].leader_epoch,
                until=ends[topic_partition] if self._is_once else None,
            )
            copied.high_watermark = ends[topic_partition]
            copied.begin_at(starts[topic_partition])
            self.partitions[topic_partition] = copied
        self._directory.note_log_starts()

    # -- records ---------------------------------------------------------------------------

    async def _follow(self, topics: Iterable[SourceTopic]) -> None:
        leaders = {
            TopicPartition(topic.name, index): leader
            for topic in topics
            for index, leader in topic.leaders.items()
        }
        by_leader: dict[int, list[CopiedPartition]] = defaultdict(list)
        for copied in self._followed():
            by_leader[leaders.get(copied.place, -1)].append(copied)
        for copied in by_leader.pop(-1, ()):
            copied.waits.begin("it has no leader", self._clock.monotonic())
        if not by_leader:
            await pause(_AGAIN_S if self._followed() else _LOOK_S)
            return
        deadline = self._clock.monotonic() + _LOOK_S
        work = [self._read_from(leader, rows, deadline) for leader, rows in by_leader.items()]
        await self._source.client.together(*work)

    async def _read_from(self, leader: int, copies: list[CopiedPartition], deadline: float) -> None:
        """Fetch until the deadline, or until the leader has lost a partition."""
        while copies and self._clock.monotonic() < deadline:
            question = partial(self._question, copies)
            answer = await self._source.client.request_of(leader, ApiKey.FETCH, question)
            if answer.error_code:
                raise ClientError(f"the fetch was refused: {explained(answer.error_code)}")
            if not await self._apply_all(answer):
                for copied in copies:
                    copied.compare_again()
                await pause(_AGAIN_S)
                return
            # Rotate: the first partition gets a batch of any size.
            copies = [copied for copied in (*copies[1:], copies[0]) if copied.is_followed]
            self._log_caught_up()

    async def _apply_all(self, answer: Any) -> bool:
        """Process a response; return whether every partition made progress."""
        names = {topic_id: name for name, topic_id in self._ids.items()}
        is_all_taken = True
        for topic in answer.responses:
            name = topic.topic or names.get(bytes(topic.topic_id), "")
            for row in topic.partitions:
                copied = self.partitions.get(TopicPartition(name, row.partition_index))
                if copied is not None and copied.is_followed:
                    is_all_taken &= await self._took(copied, row)
        return is_all_taken

    def _log_caught_up(self) -> None:
        is_behind = any(
            copied.audit.next_offset < copied.high_watermark for copied in self._followed()
        )
        if not is_behind and not self._has_logged and not self._is_once:
            self._has_logged = True
            LOGGER.info("the copy has caught up with %d partitions", len(self.partitions))

    def _question(self, copies: Iterable[CopiedPartition], version: int) -> Mapping[str, Any]:
        topics: dict[str, list[dict[str, int]]] = defaultdict(list)
        for copied in copies:
            topics[copied.place.topic].append(
                {
                    "partition": copied.place.partition,
                    "current_leader_epoch": -1,
                    "fetch_offset": copied.fetch_offset,
                    # A source that has lost records then returns where it diverges.
                    "last_fetched_epoch": copied.latest_epoch,
                    "partition_max_bytes": _PARTITION_BYTES,
                }
            )
        by_id = version >= _FIRST_BY_ID
        rows = [
            {
                "topic_id" if by_id else "topic": self._ids[name] if by_id else name,
                "partitions": partitions,
            }
            for name, partitions in topics.items()
        ]
        return {
            "max_wait_ms": _WAIT_MS,
            "min_bytes": 1,
            "max_bytes": _ANSWER_BYTES,
            "isolation_level": 0,
            "topics": rows,
        }

    async def _took(self, copied: CopiedPartition, row: Any) -> bool:
        """Process a partition's response; return whether it made progress."""
        if row.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            return await self._find_position(copied)
        if row.error_code:
            reason = f"the fetch was refused: {explained(row.error_code)}"
            if row.error_code in _MOVED:
                copied.waits.begin(reason, self._clock.monotonic())
                return False
            copied.state = reason
            return True
        diverging = getattr(row, "diverging_epoch", None)
        if diverging is not None and diverging.end_offset >= 0:
            copied.state = (
                f"the source has lost records: its epoch {diverging.epoch} ends at"
                f" {diverging.end_offset}, but the copy continues to {copied.audit.next_offset}"
            )
            return True
        copied.high_watermark = row.high_watermark
        records = memoryview(row.records or b"")
        if not copied.matches_source(records, turns=len(self.partitions)):
            return True
        await self._raise_epoch(copied, records)
        copied.take(records)
        return self._has_more(copied)

    def _has_more(self, copied: CopiedPartition) -> bool:
        """Return False if the source ends before the copy."""
        next_offset = copied.audit.next_offset
        if copied.high_watermark >= next_offset or not copied.is_followed:
            copied.waits.end()
            return True
        copied.waits.begin(
            f"the source has lost records: they end at {copied.high_watermark}, but the copy"
            f" continues to {next_offset}",
            self._clock.monotonic(),
        )
        return False

    async def _raise_epoch(self, copied: CopiedPartition, records: memoryview) -> None:
        epoch = copied.latest_epoch_in(records)
        if epoch > copied.leader_epoch:
            topic_id = self._ids[copied.place.topic]
            await self._directory.raise_epoch(topic_id, copied.place.partition, epoch)
            copied.leader_epoch = epoch

    async def _find_position(self, copied: CopiedPartition) -> bool:
        """Continue at the source's start offset, if it has deleted the next records.

        A leader also refuses an offset if it returned to older data and does not know the epoch of
        the copy's last batch. If its bounds just changed, a retry succeeds.
        """
        topic_partition, client = copied.place, self._source.client
        start = (await offsets_at(client, {topic_partition: EARLIEST}))[topic_partition]
        end = (await offsets_at(client, {topic_partition: LATEST}))[topic_partition]
        if end < copied.audit.next_offset:
            copied.state = (
                f"the source has lost records: it ends at {end}, the copy at"
                f" {copied.audit.next_offset}"
            )
        elif start > copied.fetch_offset:
            copied.begin_at(start)  # or the batch to compare was deleted
        elif copied.is_refused_within():
            copied.state = (
                f"the source has diverged: it refuses offset {copied.fetch_offset} after epoch"
                f" {copied.latest_epoch}, though it has offsets {start} to {end}"
            )
        else:
            return False
        return True
