"""ListGroups, DescribeGroups, DeleteGroups."""

from tests.support.coordinators.group_kit import Groups
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.shard import admin as group_admin


def two_groups():
    groups = Groups()
    groups.stable()
    groups.commit(group_id="simple")
    return groups


def names(groups, states=(), types=()):
    filters = [in_one_go(group_admin.filter_words(words)) for words in (states, types)]
    return [group["group_id"] for group in group_admin.list_groups(groups.shard, *filters)]


def delete(groups, *group_ids):
    token = groups.token()
    groups.carry_out(group_admin.delete_groups(groups.shard, group_ids, token))
    return [result.get("error_code", 0) for result in groups.answers[token]["results"]]


def test_groups_are_listed_with_type_and_state():
    assert group_admin.list_groups(two_groups().shard, frozenset(), frozenset()) == [
        {
            "group_id": "simple",
            "protocol_type": "",
            "group_state": "Empty",
            "group_type": "classic",
        },
        {
            "group_id": "g",
            "protocol_type": "consumer",
            "group_state": "Stable",
            "group_type": "classic",
        },
    ]


def test_groups_have_the_order_of_kafkas_hash_table(monkeypatch):
    groups = Groups()
    for number in range(1, 5):
        groups.commit(group_id=f"grp-{number}")
    # As ListGroupsRequestTest of Apache Kafka expects grp-4 and grp-1.
    assert names(groups) == ["grp-2", "grp-4", "grp-1", "grp-3"]
    monkeypatch.setattr(group_admin, "_MOST_SORTED", 3)
    assert names(groups) == ["grp-1", "grp-2", "grp-3", "grp-4"]


def test_filters_ignore_case_and_spaces():
    groups = two_groups()
    assert names(groups, states=["stable "]) == ["g"]
    assert names(groups, states=["EMPTY", "dead"]) == ["simple"]
    assert names(groups, states=["bogus"]) == []
    assert names(groups, types=["Classic"]) == ["simple", "g"]
    assert names(groups, types=["consumer"]) == []


def test_a_stable_group_shows_protocol_and_metadata():
    groups = two_groups()
    described = group_admin.describe(groups.shard, "g", version=6)
    assert described["protocol_data"] == "range"
    [member] = described["members"]
    assert member["member_metadata"] == b"subscription"
    assert member["member_assignment"].startswith(b"for ")
    assert member["client_host"] == "/1.2.3.4"


def test_a_group_that_is_not_stable_shows_neither():
    groups = two_groups()
    [leader] = groups.group().members
    groups.join(leader)
    described = group_admin.describe(groups.shard, "g", version=6)
    assert described["group_state"] == "CompletingRebalance"
    assert described["protocol_data"] == ""
    assert described["members"][0]["member_metadata"] == b""


def test_an_unknown_group_is_dead_and_from_v6_on_an_error():
    shard = Groups().shard
    assert group_admin.describe(shard, "g", version=5) == {"group_id": "g", "group_state": "Dead"}
    described = group_admin.describe(shard, "g", version=6)
    assert described["error_code"] is ErrorCode.GROUP_ID_NOT_FOUND
    assert described["error_message"] == "Group g not found."


def test_only_groups_without_members_are_deleted_with_their_offsets():
    groups = two_groups()
    assert delete(groups, "g", "simple", "other") == [
        ErrorCode.NON_EMPTY_GROUP,
        ErrorCode.NONE,
        ErrorCode.GROUP_ID_NOT_FOUND,
    ]
    assert list(groups.shard.groups) == ["g"]
    assert groups.shard.offsets.count == 0
    assert list(groups.reloaded().shard.groups) == ["g"]


def test_a_deleted_group_can_be_made_again():
    groups = Groups()
    [member] = groups.stable()
    groups.leave(member)
    delete(groups, "g")
    assert groups.error(groups.join(member)) is ErrorCode.UNKNOWN_MEMBER_ID
    groups.stable()
    assert groups.group().generation == 1
