"""What a compiled build does in C against its reference in Python, over batches with any damage.

In the plain tree both are the same code. What matches a frame is held against the parser, too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.property.budget import Budget
from tests.support.batches import batch
from tests.support.produce_frames import VERSIONS, Frame
from tests.support.pure_modules import pure
from wirebroker.codecs import plain_batch, repeated_frame
from wirebroker.codecs.compression import Codec
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.frames import parse_request_header
from wirebroker.codecs.produce import parse_produce
from wirebroker.codecs.record_batch import HEADER, HEADER_BYTES, BatchHeader, write_crc

if TYPE_CHECKING:
    from random import Random

    import pytest

_BYTES = (0, 1, 2, 0x10, 0x20, 0x7F, 0x80, 0xFF)
# Of a header that has the right length and magic 2.
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
    """Give some fields other values, mostly with a right CRC."""
    header = BatchHeader(*HEADER.unpack_from(records))
    for field in random.sample(list(_FIELDS), random.choice((0, 1, 1, 2))):
        header = header._replace(**{field: random.choice(_FIELDS[field])})
    if random.random() < 0.8:
        delta = max(header.record_count - 1, -(1 << 31))
        header = header._replace(last_offset_delta=delta)
    HEADER.pack_into(records, 0, *header)
    write_crc(records, 0)


def damage(random: Random, data: bytearray, *, first: int = 0) -> None:
    """Change bytes, of which most stand among the first `first`; cut or lengthen."""
    for _ in range(random.choice((0, 0, 1, 1, 3))):
        place = random.randrange(first if first and random.random() < 0.8 else len(data))
        data[place % len(data)] = random.choice((*_BYTES, random.randrange(256)))
    kind = random.random()
    if kind < 0.1:
        del data[random.randrange(len(data)) :]
    elif kind < 0.2:
        data += random.randbytes(random.choice((1, 3, 61)))


def test_batches_are_checked_and_placed_as_the_reference_does(pytestconfig: pytest.Config) -> None:
    budget = Budget(pytestconfig, seconds=3)
    random = budget.random
    reference = pure("plain_batch")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        records = some_batch(random)
        if random.random() < 0.6:
            other_header(random, records)
        if random.random() < 0.5:
            damage(random, records, first=HEADER_BYTES)
        expected = reference.checked_header(memoryview(bytes(records)))
        found = plain_batch.checked_header(memoryview(records))
        assert found == expected, f"{bytes(records)!r} {budget.seed=}"
        assert type(found) is type(expected)
        counts[found is not None] += 1
        if found is not None:
            base_offset = random.choice((0, 1, random.randrange(1 << 63)))
            leader_epoch = random.choice((-1, 0, random.randrange(1 << 31)))
            other = bytearray(records)
            placed = plain_batch.place(memoryview(records), found, base_offset, leader_epoch)
            assert placed == reference.place(memoryview(other), found, base_offset, leader_epoch)
            assert records == other, f"{budget.seed=}"
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def test_frames_match_as_with_the_reference_and_as_they_are_parsed(
    pytestconfig: pytest.Config,
) -> None:
    budget = Budget(pytestconfig, seconds=3)
    random = budget.random
    reference = pure("repeated_frame")
    counts = {True: 0, False: 0}
    for _ in budget.rounds():
        version = random.choice(VERSIONS)
        last = Frame(version, batch(b"a"))
        frame = Frame(version, bytes(some_batch(random)), correlation_id=random.getrandbits(32))
        data = bytearray(frame.data)
        if random.random() < 0.3:
            lead = bytes(random.choice((*_BYTES, 0x3E, 0xBE)) for _ in range(random.randint(1, 5)))
            data[frame.length_at : frame.start] = lead
        if random.random() < 0.7:
            damage(random, data, first=frame.start + 30)
        found = last.match(repeated_frame, data)
        assert found == last.match(reference, bytes(data)), (version, bytes(data), budget.seed)
        counts[found is not None] += 1
        if found is not None:
            assert found == parsed(memoryview(data)), (version, bytes(data), budget.seed)
        else:
            assert data != frame.data, (version, bytes(data), budget.seed)
    assert all(counts.values()) or sum(counts.values()) < 50, counts


def parsed(frame: memoryview) -> tuple[int, int, int, int] | None:
    """Return what `match` should, as the parser finds it; None if it refuses the frame."""
    _, version, correlation_id, _, position = parse_request_header(frame)
    try:
        request = parse_produce(frame, position, version)
    except MalformedFrameError:
        return None
    (topic,) = request.topics
    ((index, records),) = topic.partitions
    assert (index, request.acks, request.transactional_id) == (3, -1, None)
    assert records is not None
    stop = len(frame) - 3 * (version >= 9)
    return correlation_id, stop - len(records), stop, records[22]
