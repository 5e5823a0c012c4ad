"""Batches and segments for the tests of one segment."""

from wirebroker.codecs.records.batch import (
    build_batch,
    iterate_batches,
)
from wirebroker.codecs.records.record import Record
from wirebroker.storage.files import Files
from wirebroker.storage.log.segment.segment import Segment

# Recorded from Apache Kafka 4.3.1: 24 appends of one batch each, then a clean stop.
# (size, record count, max timestamp - FIRST_TIMESTAMP, last offset delta)
FIRST_TIMESTAMP = 1_700_000_000_000


def make_batch(base_offset, *, size=0, count=1, timestamp=1000, epoch=0):
    values = [b""] * count
    for filling in (0, 1, 2):  # the length of the length varies with the padding
        records = [
            Record(base_offset + delta, timestamp, None, value, [])
            for delta, value in enumerate(values)
        ]
        batch = build_batch(records, base_offset=base_offset, leader_epoch=epoch)
        if len(batch) < size:
            values[0] = bytes(len(values[0]) + size - len(batch))
        elif len(batch) > size > 0:
            values[0] = values[0][: size - len(batch)]
        assert filling < 2 or not size or len(batch) == size
    return batch


def append(segment, batch, *, interval=4096):
    segment.append(batch, [header for _, header in iterate_batches(batch)],
                   index_interval_bytes=interval)  # fmt: skip


def make_segment(tmp_path, *, base_offset=0, files=None):
    segment = Segment(files or Files(), str(tmp_path), base_offset, created_ms=0)
    segment.create()
    return segment


def filled(tmp_path, count, *, base_offset=0, size=200, interval=1000, step=10):
    segment = make_segment(tmp_path, base_offset=base_offset)
    for number in range(count):
        offset = base_offset + 2 * number
        append(
            segment,
            make_batch(offset, size=size, count=2, timestamp=number * step),
            interval=interval,
        )
    return segment


def flip_last_byte(log):
    return log[:-1] + bytes([log[-1] ^ 1])
