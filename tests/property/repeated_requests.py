"""Random Produce requests that mostly repeat the one before, for two brokers.

Each is made once and sent to both; only the topic ids differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from tests.support.protocol.produce_frames import VERSIONS
from tests.support.protocol.raw_client import request_frame
from tests.support.protocol.requests import produce_request
from tests.support.records.batches import TIMESTAMP_MS, batch
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.records.batch import read_batch_header, write_crc
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import HEADER

if TYPE_CHECKING:
    from random import Random

# Topics, each with three partitions, and their settings.
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "other": {},
    "stamped": {"message_timestamp_type": "LogAppendTime"},
    "compact": {"cleanup_policy": "compact"},
    "packed": {"compression_type": "lz4"},
}
PARTITIONS = 3
_CODECS = (Codec.GZIP, Codec.SNAPPY, Codec.LZ4, Codec.ZSTD)
_FIRST_TOPIC_ID = 13
# The unchanged start of a mutated frame: size, key and first byte of the version.
_HEAD_BYTES = 7
_TOPIC_ID_BYTES = 16
# Placeholder of a broker's topic id.
_ID = b"-the topic's id-"


class Request(NamedTuple):
    """A frame with its size, and the topic whose id it contains as _ID."""

    frame: bytes
    topic: str

    def for_broker(self, ids: dict[str, bytes]) -> bytes:
        return self.frame.replace(_ID, ids[self.topic])

    def as_made(self, answer: bytes, ids: dict[str, bytes]) -> bytes:
        """Return a broker's response with _ID in place of its topic id."""
        return answer.replace(ids[self.topic], _ID)


class RequestMaker:
    def __init__(self, random: Random) -> None:
        self._random = random
        self._version = 12
        self._acks = 1
        self.topic = "plain"
        self._index = 0
        # Whether requests name several partitions.
        self._is_wide = False
        self._client_id = "us"
        # The idempotent producer's epoch and next sequence in each partition.
        self._sequences: dict[tuple[str, int], tuple[int, int]] = {}

    def next_request(self) -> Request:
        random = self._random
        if random.random() < 0.1:
            self._change()
        topic = self.topic
        partitions = [self._index]
        if self._is_wide:
            partitions = random.sample(range(PARTITIONS), random.choice((2, PARTITIONS)))
        by_partition: dict[tuple[str, int], bytes | None] = {}
        for partition in partitions:
            self._index = partition
            by_partition[topic, partition] = self._records()
        if random.random() < 0.02:
            by_partition[topic, random.randrange(PARTITIONS + 1)] = batch(b"second")
        transactional_id = "unknown" if random.random() < 0.01 else None
        request = produce_request(by_partition, acks=self._acks, transactional_id=transactional_id)
        if self._version >= _FIRST_TOPIC_ID:
            request["topic_data"][0]["topic_id"] = _ID
        frame = request_frame(
            ApiKey.PRODUCE,
            self._version,
            request,
            correlation_id=random.getrandbits(32),
            client_id=self._client_id,
        )
        if random.random() < 0.06:
            frame = self._mutated(frame)
        return Request(frame, topic)

    def _change(self) -> None:
        """Change one property of the client, or reset all to the usual."""
        random = self._random
        self._is_wide = random.random() < 0.5
        match random.randrange(12):
            case 0 | 1:
                self.topic = random.choice(list(TOPICS))
            case 2:
                self._index = random.choice((0, 1, 0, 1, 0, 1, 2, PARTITIONS, -1))
            case 3:
                self._version = random.choice(VERSIONS)
            case 4:
                self._acks = random.choice((-1, 1, -1, 1, 0, 2))
            case 5:
                self._client_id = random.choice(("us", "them", ""))
            case _:
                self.topic = random.choice(("plain", "other", "compact", "packed"))
                self._index = random.randrange(PARTITIONS)
                self._version = random.choice(VERSIONS[2:])
                self._acks = random.choice((-1, 1))

    def _records(self) -> bytes | None:
        random = self._random
        value = random.randbytes(random.choice((0, 1, 20, 60, 120, 500, 900, 1100, 17_000)))
        match random.randrange(30):
            case 0 | 1 | 2 | 3 | 4 | 5:
                return self._odd(value)
            case 6 | 7:
                return batch(value, value, codec=random.choice(_CODECS))
            case 8 | 9:
                time_ms = random.choice((1 << 50, TIMESTAMP_MS + 4_000_000, 0))
                codec = random.choice((Codec.NONE, Codec.GZIP))
                return batch(value, timestamp_ms=time_ms, codec=codec)
            case 10 | 11 | 12 | 13 | 14:
                return self._in_sequence(value)
            case _:
                return batch(*[value] * random.choice((1, 1, 1, 2, 5)))

    def _odd(self, value: bytes) -> bytes | None:
        """Return a mostly invalid batch."""
        random = self._random
        valid_batch = batch(value, b"b")
        flipped = bytearray(valid_batch)
        flipped[random.randrange(len(valid_batch))] ^= 1 << random.randrange(8)
        return random.choice(
            (
                None,
                random.choice((b"", b"short", bytes(61))),
                valid_batch + batch(b"cut off")[: random.choice((5, 20, 62))],
                valid_batch + batch(b"second"),
                batch(value, key=None),
                bytes(flipped),
                self._other_header(valid_batch),
                self._other_header(valid_batch),
            )
        )

    def _in_sequence(self, value: bytes) -> bytes:
        """Return an idempotent producer's next batch, a duplicate or one out of sequence."""
        random = self._random
        topic_partition = self.topic, self._index
        epoch, sequence = self._sequences.get(topic_partition, (1, 0))
        match random.randrange(12):
            case 0 | 1:
                sequence = max(0, sequence - random.randint(1, 3))
            case 2:
                sequence += 5
            case 3:
                epoch -= 1
            case 4:
                epoch, sequence = epoch + 1, 0
                self._sequences[topic_partition] = epoch, 1
            case _:
                self._sequences[topic_partition] = epoch, sequence + 1
        return batch(value, producer_id=7, producer_epoch=epoch, base_sequence=sequence)

    def _other_header(self, records: bytes) -> bytes:
        """Return a batch with a changed header and a right CRC."""
        fields: dict[str, Any] = self._random.choice(
            (
                {"base_offset": 5},
                {"record_count": 3},
                {"record_count": 0, "last_offset_delta": -1},
                {"record_count": 100_000, "last_offset_delta": 99_999},
                {"last_offset_delta": 7},
                {"attributes": 0x10},
                {"attributes": 0x08},
                {"attributes": 0x20},
                {"attributes": 0x40},
                {"attributes": 5},
                {"attributes": 1},
                {"producer_id": 7},
                {"leader_epoch": 77},
                {"max_timestamp": 1 << 50},
                {"base_timestamp": 0},
            )
        )
        other = bytearray(records)
        HEADER.pack_into(other, 0, *read_batch_header(other)._replace(**fields))
        write_crc(other, 0)
        return bytes(other)

    def _mutated(self, frame: bytes) -> bytes:
        """Return a frame with changed, fewer or more bytes, but the same topic id."""
        random = self._random
        data = bytearray(frame)
        id_at = frame.find(_ID)
        for _ in range(random.choice((1, 1, 3))):
            position = random.choice(
                (
                    random.randrange(len(data)),
                    random.randrange(60),
                    len(data) - 1 - random.randrange(4),
                )
            ) % len(data)
            if position >= _HEAD_BYTES and not 0 <= position - id_at < _TOPIC_ID_BYTES:
                data[position] = random.choice((0, 1, 3, 0x7F, 0x80, 0xFF, random.randrange(256)))
        if random.random() < 0.2:
            del data[random.randrange(4 + 30, len(data)) :]
        elif random.random() < 0.2:
            data += bytes(random.randint(1, 5))
        data[:4] = (len(data) - 4).to_bytes(4)
        return bytes(data)
