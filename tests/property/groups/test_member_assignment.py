"""The handwritten codec of a member's assignment against the generic one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    decode_record_value,
    group_record,
)
from wirebroker.codecs.hot.member_assignment import (
    MemberAssignment,
    decode_member_assignment,
    encode_member_assignment,
)

KIND = GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
EPOCHS = st.dictionaries(NUMBERS, NUMBERS, max_size=40)
FEW = st.dictionaries(NUMBERS, NUMBERS, min_size=1, max_size=31)
TOPICS = st.binary(min_size=16, max_size=16)
PARTITIONS = st.dictionaries(TOPICS, EPOCHS, max_size=4)
USUAL = st.dictionaries(TOPICS, FEW, max_size=150)
STATES = st.integers(-128, 127)


def listed(partitions: dict[bytes, dict[int, int]]) -> list[dict[str, Any]]:
    return [
        {
            "topic_id": topic_id,
            "partitions": sorted(epochs),
            "assignment_epochs": [epochs[index] for index in sorted(epochs)],
        }
        for topic_id, epochs in sorted(partitions.items())
    ]


@given(NUMBERS, NUMBERS, STATES, PARTITIONS | USUAL, PARTITIONS | USUAL)
def test_encodes_what_the_generic_codec_encodes(epoch, previous, state, assigned, revoking):
    expected = group_record(
        GroupMemberKey(KIND, "g", "m"),
        member_epoch=epoch,
        previous_member_epoch=previous,
        state=state,
        assigned_partitions=listed(assigned),
        partitions_pending_revocation=listed(revoking),
    )
    assert encode_member_assignment(epoch, previous, state, assigned, revoking) == expected.value


@given(NUMBERS, NUMBERS, STATES, USUAL, USUAL)
def test_decodes_what_it_encodes(epoch, previous, state, assigned, revoking):
    value = encode_member_assignment(epoch, previous, state, assigned, revoking)
    expected = MemberAssignment(epoch, previous, state, assigned, revoking)
    assert decode_member_assignment(value) == expected


@given(USUAL, USUAL, st.data())
def test_leaves_changed_bytes_to_the_generic_codec_or_reads_the_same(assigned, revoking, data):
    value = bytearray(encode_member_assignment(5, 4, 0, assigned, revoking))
    for _ in range(data.draw(st.integers(0, 3))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    changed = bytes(
        value[: data.draw(st.integers(0, len(value)))] if data.draw(st.booleans()) else value
    )
    read = decode_member_assignment(changed)
    if read is None:
        return
    try:
        generic = decode_record_value(KIND, changed)
    except (MalformedFrameError, KafkaError) as error:
        raise AssertionError("a malformed value is accepted") from error
    assert read == MemberAssignment(
        generic.member_epoch,
        generic.previous_member_epoch,
        generic.state,
        epochs_of(generic.assigned_partitions),
        epochs_of(generic.partitions_pending_revocation),
    )


def epochs_of(topics: list[Any]) -> dict[bytes, dict[int, int]]:
    return {
        topic.topic_id: dict(zip(topic.partitions, topic.assignment_epochs, strict=True))
        for topic in topics
    }
