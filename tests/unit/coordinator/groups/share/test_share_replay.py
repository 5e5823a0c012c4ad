"""The replay of share groups' records, in whatever order compaction has left them."""

import itertools

import pytest

from tests.support.coordinators.consumer_kit import compacted_log
from tests.support.coordinators.share_group_kit import ShareGroups, T, U, content
from wirebroker.codecs.coordinator_records import group_metadata_record
from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.group_records import (
    GroupMemberKey,
    GroupRecordKind,
    WholeGroupKey,
    encode_record_key,
    group_record_tombstone,
)

STATE = GroupRecordKind.SHARE_GROUP_STATE_PARTITION_METADATA
EPOCH = GroupRecordKind.SHARE_GROUP_METADATA


def settled():
    groups = ShareGroups()
    groups.share_join("a", "t")
    groups.share_join("b", "t", "u")
    groups.share_settle()
    return groups


def test_any_order_of_the_last_records_restores_the_group():
    groups = settled()
    log = compacted_log(groups.log)
    expected = content(groups.share())
    for start in range(len(log)):
        loaded = ShareGroups(log=[*log[start:], *log[:start]], image=groups.shard.image)
        assert content(loaded.share()) == expected


@pytest.mark.parametrize("kind", [kind for kind in GroupRecordKind if "SHARE" in kind.name])
def test_tombstones_of_unknown_groups_are_ignored(kind):
    is_of_member = kind in {
        GroupRecordKind.SHARE_GROUP_MEMBER_METADATA,
        GroupRecordKind.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER,
        GroupRecordKind.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT,
    }
    key = GroupMemberKey(kind, "g", "m") if is_of_member else WholeGroupKey(kind, "g")
    groups = ShareGroups()
    groups.shard.replay(*group_record_tombstone(key))
    assert groups.shard.groups == {}
    if is_of_member:
        groups = settled()
        before = content(groups.share())
        groups.shard.replay(*group_record_tombstone(key))
        assert content(groups.share()) == before


def test_a_later_record_of_another_kind_counts():
    groups = settled()
    classic = group_metadata_record(
        "g", protocol_type="", generation=0, protocol=None, leader=None, current_state_timestamp=1
    )
    groups.shard.replay(*classic)
    assert groups.group().group_id == "g"
    assert len(groups.shard.timers) == 0


def test_share_records_replace_a_simple_group():
    log = settled().log
    groups = ShareGroups()
    groups.commit()
    for record in log:
        groups.shard.replay(*record)
    assert groups.share().members.keys() == {"a", "b"}


def test_the_state_record_alone_makes_a_group():
    groups = settled()
    (record,) = [entry for entry in compacted_log(groups.log) if entry.key[:2] == b"\x00\x0f"]
    loaded = ShareGroups(log=[record], image=groups.shard.image)
    group = loaded.share()
    assert (group.epoch, group.assignment_epoch, group.state) == (1, 1, "Empty")
    assert loaded.share_topics().initialized.keys() == {T, U}
    loaded.shard.replay(*group_record_tombstone(WholeGroupKey(STATE, "g")))
    assert loaded.share().topics is None
    loaded.shard.replay(*group_record_tombstone(WholeGroupKey(EPOCH, "g")))
    assert loaded.shard.groups == {}


def test_a_malformed_record_stops_the_replay():
    for kind, value in itertools.product((STATE, EPOCH), (b"\x00\x00", b"")):
        with pytest.raises(MalformedFrameError):
            ShareGroups().shard.replay(encode_record_key(WholeGroupKey(kind, "g")), value)
