"""The handwritten codecs of members' assignments against the generic one."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import KafkaError, MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    decode_record_value,
    group_record,
)
from wirebroker.codecs.hot import member_assignment
from wirebroker.codecs.hot.member_assignment import MemberAssignment, decode_member_assignment
from wirebroker.codecs.hot.subscription import encode_subscription
from wirebroker.codecs.hot.topic_partitions import TARGET_HEAD, decode_target, encoded_in_steps

KIND = GroupRecordKind.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT
NUMBERS = st.integers(-(1 << 31), (1 << 31) - 1)
EPOCHS = st.dictionaries(NUMBERS, NUMBERS, max_size=40)
FEW = st.dictionaries(NUMBERS, NUMBERS, min_size=1, max_size=31)
TOPICS = st.binary(min_size=16, max_size=16)
PARTITIONS = st.dictionaries(TOPICS, EPOCHS, max_size=4)
USUAL = st.dictionaries(TOPICS, FEW, max_size=150)
STATES = st.integers(-128, 127)
TARGETS = st.dictionaries(TOPICS, st.frozensets(NUMBERS, max_size=200), max_size=20)
USUAL_TARGETS = st.dictionaries(TOPICS, st.frozensets(NUMBERS, max_size=126), max_size=150)
TARGET_KINDS = st.sampled_from(
    [
        GroupRecordKind.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
    ]
)


@st.composite
def changed_bytes(draw, value: bytes) -> bytes:
    """Return the value with some other bytes, or cut off."""
    changed = bytearray(value)
    for _ in range(draw(st.integers(0, 3))):
        changed[draw(st.integers(0, len(changed) - 1))] = draw(st.integers(0, 255))
    return bytes(changed[: draw(st.integers(0, len(changed)))] if draw(st.booleans()) else changed)


def ordered(partitions: dict[bytes, Any]) -> dict[bytes, Any]:
    return dict(sorted(partitions.items()))


def listed(partitions: dict[bytes, dict[int, int]]) -> list[dict[str, Any]]:
    return [
        {
            "topic_id": topic_id,
            "partitions": sorted(epochs),
            "assignment_epochs": [epochs[index] for index in sorted(epochs)],
        }
        for topic_id, epochs in sorted(partitions.items())
    ]


def encoded(assignment: MemberAssignment) -> bytes:
    return in_one_go(member_assignment.encoded_in_steps(assignment))


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
    body = MemberAssignment(epoch, previous, state, ordered(assigned), ordered(revoking))
    assert encoded(body) == expected.value


@given(NUMBERS, NUMBERS, STATES, USUAL, USUAL)
def test_decodes_what_it_encodes(epoch, previous, state, assigned, revoking):
    body = MemberAssignment(epoch, previous, state, assigned, revoking)
    assert decode_member_assignment(encoded(body)) == body


@given(USUAL, USUAL, st.data())
def test_leaves_changed_bytes_to_the_generic_codec_or_reads_the_same(assigned, revoking, data):
    value = encoded(MemberAssignment(5, 4, 0, assigned, revoking))
    changed = data.draw(changed_bytes(value))
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


@given(TARGET_KINDS, TARGETS | USUAL_TARGETS)
def test_encodes_targets_as_the_generic_codec_does(kind, partitions):
    expected = group_record(
        GroupMemberKey(kind, "g", "m"),
        topic_partitions=[
            {"topic_id": topic_id, "partitions": sorted(indexes)}
            for topic_id, indexes in sorted(partitions.items())
        ],
    )
    assert in_one_go(encoded_in_steps(TARGET_HEAD, ordered(partitions))) == expected.value


def test_leaves_a_target_that_ends_after_its_head_to_the_generic_codec():
    assert decode_target(bytes(TARGET_HEAD)) is None


@given(USUAL_TARGETS)
def test_decodes_the_targets_that_it_encodes(partitions):
    assert decode_target(in_one_go(encoded_in_steps(TARGET_HEAD, partitions))) == partitions


@given(TARGET_KINDS, USUAL_TARGETS, st.data())
def test_leaves_changed_targets_to_the_generic_codec_or_reads_the_same(kind, partitions, data):
    value = in_one_go(encoded_in_steps(TARGET_HEAD, partitions))
    changed = data.draw(changed_bytes(value))
    read = decode_target(changed)
    if read is None:
        return
    try:
        generic = decode_record_value(kind, changed)
    except (MalformedFrameError, KafkaError) as error:
        raise AssertionError("a malformed value is accepted") from error
    assert read == {
        topic.topic_id: frozenset(topic.partitions) for topic in generic.topic_partitions
    }


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=200)
NAMES = st.lists(st.text("a.-_Z9", max_size=150) | TEXTS, max_size=200)
PROTOCOLS = st.lists(st.tuples(TEXTS, st.binary(max_size=20)), max_size=2)


@given(NAMES, st.lists(TEXTS | st.none(), min_size=5, max_size=5), NUMBERS, st.none() | PROTOCOLS)
def test_encodes_subscriptions_as_the_generic_codec_does(names, texts, timeout_ms, protocols):
    instance_id, rack_id, regex, assignor, client_id = texts
    fields = {
        "instance_id": instance_id,
        "rack_id": rack_id,
        "client_id": client_id or "",
        "client_host": "/1.2.3.4",
        "subscribed_topic_regex": regex,
        "rebalance_timeout_ms": timeout_ms,
        "server_assignor": assignor,
        "classic_member_metadata": None
        if protocols is None
        else {
            "session_timeout_ms": timeout_ms,
            "supported_protocols": [
                {"name": name, "metadata": metadata} for name, metadata in protocols
            ],
        },
    }
    kind = GroupRecordKind.CONSUMER_GROUP_MEMBER_METADATA
    key = GroupMemberKey(kind, "g", "m")
    expected = group_record(key, subscribed_topic_names=names, **fields)
    assert encode_subscription(names, **fields) == expected.value
