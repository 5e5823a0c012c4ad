"""SyncGroup: the assignment is recorded, and each member receives its part."""

from tests.support.coordinators.group_kit import REBALANCE_MS, SESSION_MS, Groups
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.classic.classic_group import GroupState


def completing(groups, count=2):
    ids = [groups.new_id() for _ in range(count)]
    for member_id in ids:
        groups.join(member_id)
    groups.advance(0)
    return ids


def test_members_wait_for_the_leader_and_get_their_assignment():
    groups = Groups()
    leader, follower = completing(groups)
    early = groups.sync(follower)
    assert early not in groups.answers
    done = groups.sync(leader, {leader: b"L", follower: b"F"})
    assert groups.answers[early]["assignment"] == b"F"
    assert groups.answers[done]["assignment"] == b"L"
    assert groups.group().state is GroupState.STABLE


def test_late_sync_is_answered_at_once():
    groups = Groups()
    leader, follower = completing(groups)
    groups.sync(leader, {follower: b"F"})
    assert groups.answers[groups.sync(follower)]["assignment"] == b"F"
    assert groups.answers[groups.sync(leader)]["assignment"] == b"", "it got nothing assigned"


def test_group_record_holds_everything_a_load_needs():
    groups = Groups()
    leader, follower = completing(groups)
    groups.sync(leader, {leader: b"L", follower: b"F"})
    loaded = groups.reloaded().group()
    assert loaded.state is GroupState.STABLE
    assert loaded.generation == 1
    assert loaded.leader == leader
    assert loaded.protocol == "range"
    assert loaded.members[follower].assignment == b"F"
    assert loaded.members[follower].client_host == "/1.2.3.4"
    assert loaded.members[follower].protocols == (("range", b"subscription"),)


def test_rebalance_in_progress_is_not_restored_by_a_load():
    groups = Groups()
    [leader] = groups.stable()
    groups.join(leader)
    assert groups.group().generation == 2
    assert groups.reloaded().group().generation == 1


def test_invalid_sync_requests_are_refused():
    groups = Groups()
    leader, _ = completing(groups)

    def error(member_id, **fields):
        return groups.error(groups.sync(member_id, **fields))

    assert error("somebody") is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(leader, group_id="other") is ErrorCode.UNKNOWN_MEMBER_ID
    assert error(leader, generation=2) is ErrorCode.ILLEGAL_GENERATION
    assert error(leader, protocol="sticky") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert error(leader, protocol_type="connect") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    groups.join(leader, known=(("range", b"new"),))
    assert error(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_an_empty_group_has_no_members_to_sync():
    groups = Groups()
    [member] = groups.stable()
    groups.leave(member)
    assert groups.error(groups.sync(member)) is ErrorCode.UNKNOWN_MEMBER_ID


def test_unrecordable_assignment_makes_all_members_rejoin():
    groups = Groups()
    leader, follower = completing(groups)
    waiting = groups.sync(follower)
    groups.fails_with = ErrorCode.UNKNOWN_SERVER_ERROR
    done = groups.sync(leader, {leader: b"L", follower: b"F"})
    assert groups.error(waiting) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.error(done) is ErrorCode.UNKNOWN_SERVER_ERROR
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    assert groups.member(follower).assignment == b""
    groups.fails_with = None
    groups.join(leader)
    groups.join(follower)
    assert groups.group().generation == 2


def test_members_that_never_sync_are_removed_after_the_rebalance_timeout():
    groups = Groups()
    leader, follower = completing(groups)
    groups.sync(leader, {leader: b"L"})
    for _ in range(REBALANCE_MS // 5_000):
        groups.advance(5_000)
        groups.heartbeat(leader)
        groups.heartbeat(follower)
    assert follower not in groups.group().members
    assert groups.group().state is GroupState.PREPARING_REBALANCE
    assert groups.heartbeat(leader) is ErrorCode.REBALANCE_IN_PROGRESS


def test_member_waiting_for_the_leader_does_not_expire():
    groups = Groups()
    leader, follower = completing(groups)
    waiting = groups.sync(follower)
    for _ in range(4):
        groups.advance(SESSION_MS // 2)
        groups.heartbeat(leader)
    assert waiting not in groups.answers
    groups.sync(leader, {follower: b"F"})
    assert groups.answers[waiting]["assignment"] == b"F"
    groups.advance(SESSION_MS - 1)
    assert follower in groups.group().members
