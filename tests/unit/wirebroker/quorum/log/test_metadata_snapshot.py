"""Snapshots: header, records, footer, and the refusal of incomplete ones."""

import asyncio

import pytest

from tests.support.coordinators.kit import image_of, one_broker, topic
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.errors import KafkaError
from wirebroker.codecs.records.batch import iterate_batches
from wirebroker.codecs.records.control import KRaftVersion, KRaftVoters, Voter, VoterEndpoint
from wirebroker.quorum.log.metadata_batches import decode_batch
from wirebroker.quorum.log.metadata_snapshot import (
    SnapshotId,
    encode_snapshot,
    read_snapshot,
    snapshot_ids,
)

VOTERS = [
    KRaftVersion(1),
    KRaftVoters((Voter(1, bytes(16), (VoterEndpoint("C", "localhost", 9093),), 0, 1),)),
]


def encoded(image, voters=()):
    pieces = asyncio.run(encode_snapshot(image, voters=voters, timestamp_ms=5, clock=SystemClock()))
    return b"".join(pieces)


def test_snapshot_round_trips_image_voters_and_timestamp():
    image = one_broker(*topic("a", 1, partitions=1500))
    contents = read_snapshot(encoded(image, VOTERS))
    records = [
        record for header, batch in contents.batches for record in decode_batch(batch, header)
    ]
    restored = image_of(*records)
    assert restored.topics == image.topics
    assert restored.brokers == image.brokers
    assert contents.voters == VOTERS
    assert contents.timestamp_ms == 5


def test_offsets_in_a_snapshot_count_from_zero_without_gaps():
    expected = 0
    for _, header in iterate_batches(encoded(one_broker(*topic("a", 1, partitions=1500)))):
        assert header.base_offset == expected
        expected = header.last_offset + 1


def test_snapshot_of_an_empty_cluster_is_valid():
    assert read_snapshot(encoded(image_of())).batches == []


@pytest.mark.parametrize("kept", [0, 1])
def test_a_snapshot_without_footer_or_header_is_incomplete(kept):
    content = encoded(one_broker())
    positions = [position for position, _ in iterate_batches(content)]
    cut = content[: positions[-1]] if kept else content[positions[1] :]
    with pytest.raises(KafkaError, match=r"footer|header"):
        read_snapshot(cut)


def test_damaged_byte_is_detected():
    content = bytearray(encoded(one_broker()))
    content[-30] ^= 1
    with pytest.raises(KafkaError, match="CRC-32C"):
        read_snapshot(bytes(content))


def test_snapshots_are_found_by_their_names_oldest_first():
    names = [
        "00000000000000000042-0000000003.checkpoint",
        "00000000000000000007-0000000001.checkpoint",
        "00000000000000000042-0000000003.checkpoint.part",
        "bootstrap.checkpoint",
        "00000000000000000000.log",
    ]
    assert snapshot_ids(names) == [SnapshotId(7, 1), SnapshotId(42, 3)]
