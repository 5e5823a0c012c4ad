"""Expiry of unused offsets and groups (KIP-211)."""

from tests.support.coordinators.group_kit import Groups
from wirebroker.coordinator.groups.shard.expiry import sweep_deleted_topics, sweep_expired

RETENTION_MS = 1_000_000
SESSION_MS = RETENTION_MS * 10
SUBSCRIPTION = b"\x00\x01\x00\x00\x00\x01\x00\x04read"
TOPIC_ID = bytes(range(16))


def make(**settings):
    return Groups(offsets_retention_ms=RETENTION_MS, **settings)


def expire(groups):
    for outcome in sweep_expired(groups.shard, groups.moment.wall_ms):
        groups.carry_out(outcome)


def test_a_simple_groups_offset_goes_by_its_own_age_and_the_group_with_the_last_one():
    groups = make()
    groups.commit(partition=0)
    groups.advance(1)
    groups.commit(partition=1)
    groups.advance(RETENTION_MS - 1)
    expire(groups)
    assert groups.committed(partition=0) is None
    assert groups.committed(partition=1) == 5
    groups.advance(1)
    expire(groups)
    assert groups.shard.groups == {}
    assert groups.reloaded().shard.groups == {}


def test_an_empty_groups_offsets_go_by_the_time_it_became_empty():
    groups = make()
    [member] = groups.stable()
    groups.commit(member, generation=1)
    groups.advance(5_000)
    groups.leave(member)
    groups.advance(RETENTION_MS - 1)
    expire(groups)
    assert groups.committed() == 5
    groups.advance(1)
    expire(groups)
    assert groups.shard.groups == {}


def test_what_a_stable_group_reads_stays_and_what_it_reads_no_more_goes():
    groups = make()
    [member] = groups.stable(known=(("range", SUBSCRIPTION),), session_ms=SESSION_MS)
    for topic in ("read", "t"):
        groups.commit(member, generation=1, topic=topic)
    groups.advance(RETENTION_MS)
    expire(groups)
    assert groups.committed("read") == 5
    assert groups.committed("t") is None


def test_a_group_of_other_clients_keeps_all_while_it_has_members():
    groups = make()
    [member] = groups.stable(protocol_type="connect", session_ms=SESSION_MS)
    groups.commit(member, generation=1)
    groups.advance(RETENTION_MS)
    expire(groups)
    assert groups.committed() == 5


def test_an_expiry_time_of_its_own_goes_before_the_retention():
    groups = make()
    groups.commit(retention_ms=10)
    groups.advance(9)
    expire(groups)
    assert groups.committed() == 5
    groups.advance(1)
    expire(groups)
    assert groups.committed() is None


def test_an_empty_group_without_offsets_goes_at_the_next_look():
    groups = make()
    [member] = groups.stable()
    expire(groups)
    assert "g" in groups.shard.groups
    groups.leave(member)
    expire(groups)
    assert groups.shard.groups == {}


def test_thousands_of_offsets_go_in_steps():
    groups = make()
    for partition in range(2_500):
        groups.commit(partition=partition)
    groups.advance(RETENTION_MS)
    steps = [len(each.records) for each in sweep_expired(groups.shard, groups.moment.wall_ms)]
    assert steps == [1_000, 1_000, 500]


def test_the_offsets_of_a_deleted_topic_go_but_not_those_of_its_successor():
    groups = make()
    groups.commit(topic="gone", partition=0)
    groups.commit(topic="gone", partition=1, topic_id=TOPIC_ID)
    groups.commit(topic="gone", partition=2, topic_id=TOPIC_ID[::-1])
    groups.commit(topic="stays", topic_id=TOPIC_ID)
    for outcome in sweep_deleted_topics(groups.shard, {"gone": TOPIC_ID}):
        groups.carry_out(outcome)
    left = [groups.committed("gone", partition) for partition in range(3)]
    assert left == [None, None, 5]
    assert groups.committed("stays") == 5
