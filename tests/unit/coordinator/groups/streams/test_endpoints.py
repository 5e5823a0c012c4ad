"""The partitions of members with an endpoint, of large groups."""

import pytest

from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.streams_kit import StreamsGroups, subtopology, topology
from tests.support.harness.step_lines import lines_of_steps
from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.streams import endpoints

TOPICS = [f"t{number}" for number in range(500)]
WIDE = topology(subtopology("0", *TOPICS, "wide"))


@pytest.fixture
def groups():
    """A group of two members with endpoints and 100 tasks, which read 501 topics."""
    records = [record for number, name in enumerate(TOPICS, 2) for record in topic(name, number)]
    wide = topic("wide", 1, partitions=100)
    groups = StreamsGroups(image=one_broker(*records, *wide))
    for number, member_id in enumerate(("a", "b")):
        groups.enter(member_id, topology=WIDE, endpoint=(member_id, number))
    groups.settle("a", "b")
    return groups


def entries_of(groups):
    member = groups.streams_member("a")
    return endpoints.partitions_by_endpoint(
        groups.streams_group(), member, None, groups.shard.image.topics
    )


def counts_of(entries):
    return {
        entry["user_endpoint"]["host"]: sum(
            len(each["partitions"]) for each in entry["active_partitions"]
        )
        for entry in entries
    }


def test_partitions_are_listed_in_short_steps(groups):
    groups.streams_group().endpoints.clear()
    assert max(lines_of_steps(entries_of(groups))) < 1_000
    assert len(groups.streams_group().endpoints) == 1
    counts = counts_of(in_one_go(entries_of(groups)))
    assert sum(counts.values()) == 100 + len(TOPICS)


def test_members_beyond_the_bound_are_left_out(groups, monkeypatch):
    monkeypatch.setattr(endpoints, "MOST_PARTITIONS", 10)
    # Not the member of the request.
    assert counts_of(in_one_go(entries_of(groups))).keys() == {"a"}


def test_steps_that_run_later_do_not_keep_a_former_state(groups):
    groups.streams_group().endpoints.clear()
    steps = entries_of(groups)
    next(steps)
    groups.beat("b", -1)
    in_one_go(steps)
    assert groups.streams_group().endpoints == {}
