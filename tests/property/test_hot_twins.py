"""C functions of a compiled build against their Python reference, on damaged batches.

In the plain tree both are the same code. Matched frames are compared with the parser as well.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tests.support.harness.budget import SharedBudget
from tests.support.harness.pure_modules import pure
from tests.support.protocol.produce_frames import VERSIONS, Frame, produce_frame
from tests.support.records.batches import batch
from tests.transcripts.raw_records import record
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.frames import parse_request_header
from wirebroker.codecs.hot import repeated_frame
from wirebroker.codecs.hot.produce import parse_produce
from wirebroker.codecs.records import plain_batch
from wirebroker.codecs.records import walk as record_walk
from wirebroker.codecs.records.batch import BatchHeader, write_crc
from wirebroker.codecs.records.codec import Codec
from wirebroker.codecs.records.layout import HEADER, HEADER_BYTES, MAGIC
from wirebroker.codecs.records.record import read_records

if TYPE_CHECKING:
    from random import Random

    import pytest

# In the plain tree the reference is compared with itself, so a short test suffices.
_SCALE = 1.0 if record_walk.IS_QUICK else 0.2
_BYTES = (0, 1, 2, 0x10, 0x20, 0x7F, 0x80, 0xFF)
# Header fields of a batch with the right length and magic 2.
_FIELDS = {
    "base_offset": (0, 0, 1, -1),
    "attributes": (0, 0, 4, 5, 7, 8, 0x10, 0x20, -1, -(1 << 15)),
    "producer_id": (-1, 0, 7, -(1 << 63), (1 << 63) - 1),
    "base_sequence": (-1, 0, 5, -(1 << 31)),
    "record_count": (-(1 << 31), -1, 0, 1, 2, 3, 100, (1 << 31) - 1),
}


def some_batch(random: Random) -> bytearray:
    size = random.choice((0, 1, 50, 900, 963, 964, 2_000, 40_000))
    values = [random.randbytes(random.randint(0, size)) for _ in range(random.choice((1, 1, 3)))]
    fields: dict[str, Any] = {}
    if random.random() < 0.3:
        fields = {"producer_id": 7, "producer_epoch": 1, "base_sequence": random.randrange(9)}
    return bytearray(batch(*values, codec=random.choice(list(Codec)), **fields))


def other_header(random: Random, records: bytearray) -> None:
    """Change some fields, mostly with a right CRC."""
    header = BatchHeader(*HEADER.unpack_from(records))
    for field in random.sample(list(_FIELDS), random.choice((0, 1, 1, 2))):
        header = header._replace(**{field: random.choice(_FIELDS[field])})
    if random.random() < 0.8:
        delta = max(header.record_count - 1, -(1 << 31))
        header = header._replace(last_offset_delta=delta)
    HEADER.pack_into(records, 0, *header)
    write_crc(records, 0)


def damage(random: Random, data: bytearray, *, first: int = 0) -> None:
    """Change bytes, mostly among the first `first`; cut or lengthen."""
    for _ in range(random.choice((0, 0, 1, 1, 3))):
        position = random.randrange(first if first and random.random() < 0.8 else len(data))
        data[position % len(data)] = random.choice((*_BYTES, random.randrange(256)))
    kind = random.random()
    if kind < 0.1:
        del data[random.randrange(len(data)) :]
    elif kind < 0.2:
        data += random.randbytes(random.choice((1, 3, 61)))


def test_batches_are_checked_and_placed_as_by_the_reference(pytestconfig: pytest.Config) -> None:
    budget = SharedBudget(pytestconfig, seconds=3 * _SCALE)
    random = budget.random
    reference = pure("records.plain_batch")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        records = some_batch(random)
        if random.random() < 0.6:
            other_header(random, records)
        if random.random() < 0.5:
            damage(random, records, first=HEADER_BYTES)
        is_walked = random.random() < 0.5
        expected = reference.checked_header(memoryview(bytes(records)), is_walked)
        actual = plain_batch.checked_header(memoryview(records), is_walked)
        assert actual == expected, f"{bytes(records)!r} {budget.seed=}"
        assert type(actual) is type(expected)
        counts[actual is not None] += 1
        if actual is not None:
            base_offset = random.choice((0, 1, random.randrange(1 << 63)))
            leader_epoch = random.choice((-1, 0, random.randrange(1 << 31)))
            other = bytearray(records)
            placed = plain_batch.place(memoryview(records), actual, base_offset, leader_epoch)
            assert placed == reference.place(memoryview(other), actual, base_offset, leader_epoch)
            assert records == other, f"{budget.seed=}"
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def test_records_are_walked_as_by_the_reference_in_any_pieces(
    pytestconfig: pytest.Config,
) -> None:
    """Also compares the reference with other cuts, and the reader of record objects."""
    budget = SharedBudget(pytestconfig, seconds=5 * _SCALE)
    random = budget.random
    reference = pure("records.walk")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        payload, count = some_payload(random)
        base_timestamp = random.choice((-1, 0, 1_700_000_000_000, (1 << 63) - 1, -(1 << 63)))
        most_bytes = random.choice(((), (), (random.choice((0, 10, 40, 1 << 40)),)))
        times = random.choice(((-(1 << 63), 1 << 40, False), (5, 1_700_000_000_002, True)))
        rules = (*times, *most_bytes) if most_bytes else random.choice(((), times))
        arguments = (count, base_timestamp, *rules)
        actual = outcome(record_walk.RecordWalker(*arguments), cut(random, payload))
        expected = outcome(reference.RecordWalker(*arguments), cut(random, payload))
        uncut = outcome(reference.RecordWalker(*arguments), [payload])
        assert actual == expected == uncut, (payload.hex(), arguments, budget.seed)
        if not most_bytes:
            assert (actual is not None) is reads(payload, count), (payload.hex(), budget.seed)
        counts[actual is not None] += 1
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def some_payload(random: Random) -> tuple[bytes, int]:
    count = random.choice((1, 1, 2, 5, 300))
    records = [some_record(random, index) for index in range(count)]
    payload = bytearray(b"".join(records))
    if random.random() < 0.5:
        damage(random, payload, first=30)
    if random.random() < 0.1:
        count += random.choice((-1, 1))
    return bytes(payload), count


def some_record(random: Random, index: int) -> bytes:
    names = ("", "h", "a name of a header", None)
    headers = [
        (random.choice(names[: 3 + (random.random() < 0.05)]), random.choice(names))
        for _ in range(random.choice((0, 0, 0, 1, 3)))
    ]
    return record(
        random.choice((None, "", "v", "v" * 63, "v" * 64, "v" * 9000)),
        key=random.choice((None, "", "k", "k" * 100)),
        offset=index if random.random() < 0.99 else random.choice((0, -1, index + 1, 1 << 30)),
        time=random.choice((0, 1, -1, 5000, 1 << 40, (1 << 63) - 1, -(1 << 63))),
        attributes=random.choice((0, 0, 255)),
        headers=headers,
        widths=random.choice((0, 0, 0, 5)) if random.random() < 0.2 else 0,
    )


def cut(random: Random, payload: bytes) -> list[memoryview]:
    size = random.choice((1, 2, 7, 100, 5000))
    ends, position = [], 0
    while position < len(payload):
        position += random.randint(1, size)
        ends.append(min(position, len(payload)))
    starts = [0, *ends]
    return [memoryview(payload)[a:b] for a, b in zip(starts, ends, strict=False)]


def outcome(walker: Any, pieces: list[Any]) -> tuple[Any, ...] | None:
    for piece in pieces:
        if not walker.feed(piece):
            assert walker.fault is not None
            assert not walker.feed(b"")
            return None
    if walker.fault is not None:
        return None
    refused = [(index, timestamp) for index, timestamp in walker.refused]
    return walker.max_timestamp, refused, walker.refused_count, walker.is_time_refused


def reads(payload: bytes, count: int) -> bool:
    try:
        walk = read_records(payload, count=count, base_offset=0, base_timestamp=0, append_time=None)
        return [decoded.offset for decoded in walk] == list(range(count))
    except KafkaError:
        return False


def test_frame_matching_agrees_with_the_reference_and_the_parser(
    pytestconfig: pytest.Config,
) -> None:
    budget = SharedBudget(pytestconfig, seconds=3 * _SCALE)
    random = budget.random
    reference = pure("hot.repeated_frame")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        version = random.choice(VERSIONS)
        last = Frame(version, batch(b"a"))
        batches = {
            index: bytes(some_batch(random)) for index in range(random.choice((1, 1, 2, 3, 30)))
        }
        frame = produce_frame(version, batches, correlation_id=random.getrandbits(32))
        data = bytearray(frame)
        if random.random() < 0.3:
            lead = bytes(random.choice((*_BYTES, 0x3E, 0xBE)) for _ in range(random.randint(1, 5)))
            data[last.length_at : last.start] = lead
        if random.random() < 0.7:
            damage(random, data, first=last.start + 30)
        actual = matched(last.match(repeated_frame, data))
        assert actual == matched(last.match(reference, bytes(data))), (version, bytes(data))
        counts[actual is not None] += 1
        if actual is not None:
            assert actual == parsed(memoryview(data)), (version, bytes(data), budget.seed)
        else:
            assert data != frame or any(map(is_no_batch, batches.values())), (version, budget.seed)
    assert all(counts.values()) or sum(counts.values()) < 50, counts


Matched: TypeAlias = "tuple[int, list[tuple[int, bytes, int]]] | None"


def matched(result: Any) -> Matched:
    """Return the result of `match` with bytes instead of views."""
    if result is None:
        return None
    correlation_id, parts = result
    return correlation_id, [(index, bytes(records), low) for index, records, low in parts]


def is_no_batch(records: bytes) -> bool:
    """Return whether a length or the magic is invalid."""
    header = BatchHeader(*HEADER.unpack_from(records))
    return header.size != len(records) or header.magic != MAGIC


def parsed(frame: memoryview) -> Matched:
    """Return what `match` should find, according to the parser; None if it refuses the frame."""
    _, version, correlation_id, _, position = parse_request_header(frame)
    try:
        request = parse_produce(frame, position, version)
    except MalformedFrameError:
        return None
    (topic,) = request.topics
    assert (request.acks, request.transactional_id) == (-1, None)
    parts: list[tuple[int, bytes, int]] = []
    for index, records in topic.partitions:
        assert records is not None
        parts.append((index, bytes(records), records[22]))
    return correlation_id, parts
