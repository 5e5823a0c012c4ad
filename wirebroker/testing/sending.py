"""Records on their way into topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.partitioning import partition_for
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import build_batch
from wirebroker.testing.conversation import Patience, check
from wirebroker.testing.topic_record import TopicRecord
from wirebroker.testing.topics import count_partitions

if TYPE_CHECKING:
    from wirebroker.testing.conversation import Conversation

# Later versions know topics by their ids.
_BY_NAME: Final = 12
_PATIENCE_S: Final = 10.0


class Parcel(NamedTuple):
    """What is to be appended; the partition is None where key or turn decide."""

    topic: str
    partition: int | None
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]
    timestamp_ms: int


class Sender:
    """Appends records, and remembers whose turn it is."""

    def __init__(self) -> None:
        # topic -> how many records without a key it was sent.
        self._sent: dict[str, int] = {}

    async def send(self, conversation: Conversation, parcel: Parcel) -> TopicRecord:
        """Append a record with acks=all; return it as it is stored.

        Raises:
            KafkaError: The broker refuses it.
        """
        patience = Patience(_PATIENCE_S)
        count = await count_partitions(conversation, parcel.topic, patience, may_create=True)
        assert count is not None, "it is an error that there is none"
        if parcel.partition is not None:
            partition = parcel.partition
        elif parcel.key is not None:
            partition = partition_for(parcel.key, count)
        else:
            turn = self._sent.get(parcel.topic, 0)
            self._sent[parcel.topic] = turn + 1
            partition = turn % count
        return await _append(conversation, parcel, partition, patience)


async def _append(
    conversation: Conversation, parcel: Parcel, partition: int, patience: Patience
) -> TopicRecord:
    topic, _, key, value, headers, timestamp_ms = parcel
    batch = build_batch([(key, value, headers)], timestamp_ms=timestamp_ms)
    data = {"name": topic, "partition_data": [{"index": partition, "records": bytes(batch)}]}
    while True:
        timeout_ms = int(patience.left_s * 1000)
        request = {"acks": -1, "timeout_ms": timeout_ms, "topic_data": [data]}
        answer = await conversation.ask(ApiKey.PRODUCE, request, patience, at_most=_BY_NAME)
        stored = answer.responses[0].partition_responses[0]
        if await conversation.is_worth_another_try(stored.error_code, patience):
            continue
        check(stored.error_code, stored.error_message or f"{topic}-{partition} takes no record")
        append_time = stored.log_append_time_ms
        return TopicRecord(
            topic=topic,
            partition=partition,
            offset=stored.base_offset,
            timestamp=timestamp_ms if append_time < 0 else append_time,
            key=key,
            value=value,
            headers=headers,
        )
