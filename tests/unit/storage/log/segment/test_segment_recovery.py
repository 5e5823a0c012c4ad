"""Recovery of a segment: it cuts at the first bad batch."""

import pytest

from tests.unit.storage.log.segment.segment_kit import (
    append,
    filled,
    flip_last_byte,
    make_batch,
    make_segment,
)
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.files import Files
from wirebroker.storage.log.segment.segment import Segment


@pytest.mark.parametrize(
    ("damage", "batches_left", "why"),
    [
        (lambda log: log[:-1], 19, "claims 200 bytes where 199 are left"),
        (lambda log: log[:-170], 19, "in 30 bytes is too short"),
        (flip_last_byte, 19, "the CRC-32C does not match"),
        (lambda log: log + bytes(5000), 20, "length 0"),
        (lambda log: log + make_batch(38, count=2), 20, "are not from 40"),
        (lambda log: log + make_batch(2**31), 20, "too far"),
        (lambda log: log[:1000] + b"x" * 1000 + log[2000:], 5, "CORRUPT_MESSAGE"),
        (lambda _: b"", 0, None),
    ],
)
def test_recovery_cuts_at_the_first_bad_batch(tmp_path, damage, batches_left, why):
    segment = filled(tmp_path, 20)
    segment.close()
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(damage(path.read_bytes()))
    damaged_size = path.stat().st_size
    segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
    result = segment.recover(lambda *_: None, index_interval_bytes=1000)
    assert result.valid_bytes == 200 * batches_left == path.stat().st_size == segment.size
    assert result.cut_bytes == damaged_size - result.valid_bytes
    assert result.next_offset == 2 * batches_left
    assert (why or "") in (result.reason or "")
    assert segment.sanity_check() is None
    assert segment.max_timestamp == (batches_left - 1) * 10 if batches_left else -1
    append(segment, make_batch(result.next_offset))
    assert segment.position_for_offset(result.next_offset) is not None


def test_recovery_keeps_a_prefix_of_whole_batches_wherever_the_file_is_cut(tmp_path):
    segment = filled(tmp_path, 4, size=100)
    log = segment.log.read_at(0, 400)
    segment.close()
    for cut in range(400):
        (tmp_path / "00000000000000000000.log").write_bytes(log[:cut])
        segment = Segment(Files(), str(tmp_path), 0, created_ms=0)
        result = segment.recover(lambda *_: None, index_interval_bytes=100)
        assert (result.valid_bytes, result.cut_bytes) == (cut - cut % 100, cut % 100)
        segment.close()


def test_recovery_keeps_the_gaps_of_compaction(tmp_path):
    segment = make_segment(tmp_path, base_offset=3)
    append(segment, make_batch(5))
    append(segment, make_batch(90))
    result = segment.recover(lambda *_: None, index_interval_bytes=1000)
    assert (result.reason, result.next_offset) == (None, 91)


def test_recovery_never_cuts_batches_of_an_old_format(tmp_path):
    segment = filled(tmp_path, 3)
    old = bytearray(make_batch(6))
    old[16] = 1
    segment.log.write_at(600, old)
    with pytest.raises(KafkaError) as raised:
        segment.recover(lambda *_: None, index_interval_bytes=1000)
    assert raised.value.code is ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT
    assert segment.log.size() == 600 + len(old)


def test_recovery_ends_where_its_caller_refuses_a_batch(tmp_path):
    segment = filled(tmp_path, 5)

    def refuse_the_third(header, batch):
        assert len(batch) == header.size
        if header.base_offset == 4:
            raise KafkaError(ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, "not now")

    result = segment.recover(refuse_the_third, index_interval_bytes=1000)
    assert (result.valid_bytes, result.next_offset) == (400, 4)


def test_recovery_reads_batches_larger_than_its_chunks(tmp_path):
    segment = make_segment(tmp_path)
    append(segment, make_batch(0, size=700_000))
    append(segment, make_batch(1, size=3_000_000))
    append(segment, make_batch(2, size=100))
    result = segment.recover(lambda *_: None, index_interval_bytes=4096)
    assert (result.valid_bytes, result.reason) == (3_700_100, None)
    assert segment.offset_index.entry_count == 2
