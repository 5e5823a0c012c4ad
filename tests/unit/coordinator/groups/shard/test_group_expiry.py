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


def test_simple_group_offsets_expire_by_age_then_the_group():
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


def test_empty_group_offsets_expire_from_when_it_became_empty():
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


def test_stable_group_keeps_offsets_of_subscribed_topics_only():
    groups = make()
    [member] = groups.stable(known=(("range", SUBSCRIPTION),), session_ms=SESSION_MS)
    for topic in ("read", "t"):
        groups.commit(member, generation=1, topic=topic)
    groups.advance(RETENTION_MS)
    expire(groups)
    assert groups.committed("read") == 5
    assert groups.committed("t") is None


def test_non_consumer_group_keeps_offsets_while_it_has_members():
    groups = make()
    [member] = groups.stable(protocol_type="connect", session_ms=SESSION_MS)
    groups.commit(member, generation=1)
    groups.advance(RETENTION_MS)
    expire(groups)
    assert groups.committed() == 5


def test_explicit_expiry_time_overrides_the_retention():
    groups = make()
    groups.commit(retention_ms=10)
    groups.advance(9)
    expire(groups)
    assert groups.committed() == 5
    groups.advance(1)
    expire(groups)
    assert groups.committed() is None


def test_empty_group_without_offsets_is_removed_at_next_sweep():
    groups = make()
    [member] = groups.stable()
    expire(groups)
    assert "g" in groups.shard.groups
    groups.leave(member)
    expire(groups)
    assert groups.shard.groups == {}


def test_thousands_of_offsets_expire_in_steps():
    groups = make()
    for partition in range(2_500):
        groups.commit(partition=partition)
    groups.advance(RETENTION_MS)
    steps = [len(outcome.records) for outcome in sweep_expired(groups.shard, groups.moment.wall_ms)]
    assert steps == [1_000, 1_000, 500]


def test_offsets_of_deleted_topic_are_removed_but_not_its_successors():
    groups = make()
    groups.commit(topic="gone", partition=0)
    groups.commit(topic="gone", partition=1, topic_id=TOPIC_ID)
    groups.commit(topic="gone", partition=2, topic_id=TOPIC_ID[::-1])
    groups.commit(topic="stays", topic_id=TOPIC_ID)
    for outcome in sweep_deleted_topics(groups.shard, {"gone": TOPIC_ID}):
        groups.carry_out(outcome)
    remaining = [groups.committed("gone", partition) for partition in range(3)]
    assert remaining == [None, None, 5]
    assert groups.committed("stays") == 5
