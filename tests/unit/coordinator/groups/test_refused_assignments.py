"""Assignments whose records the log refuses, such as too large ones, in all kinds of groups."""

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups
from tests.support.coordinators.kit import one_broker, topic
from tests.support.coordinators.share_group_kit import ShareGroups
from tests.support.coordinators.streams_kit import StreamsGroups, subtopology, topology
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.consumer import target_assignment
from wirebroker.coordinator.groups.share import share_assignment
from wirebroker.coordinator.groups.streams import task_assignment

IMAGE = one_broker(*topic("t", 1, partitions=8))


class Consumers(ConsumerGroups):
    def first(self):
        self.enter("a", "t")

    def next(self, rack=None):
        self.advance(1_000)
        self.stay("a", rack=rack)

    def other(self):
        self.enter("b", "t")


class Sharers(ShareGroups):
    def first(self):
        self.share_join("a", "t")
        self.work()
        self.advance(1_000)
        self.share_stay("a")

    def next(self):
        self.advance(1_000)
        self.share_stay("a")

    def other(self):
        self.share_join("b", "t")


class Streams(StreamsGroups):
    def first(self):
        self.enter("a", topology=topology(subtopology("0", "t")))
        self.work()
        self.advance(1_000)
        self.stay("a")

    def next(self):
        self.advance(1_000)
        self.stay("a")

    def other(self):
        self.enter("b", topology=topology(subtopology("0", "t")))


@pytest.fixture(autouse=True)
def large(monkeypatch):
    """Compute every assignment in the background."""
    for module in (target_assignment, share_assignment, task_assignment):
        monkeypatch.setattr(module, "MOST_AT_ONCE", 0)


@pytest.fixture(params=[Consumers, Sharers, Streams])
def waiting(request):
    """Return a group whose member waits for its assignment."""
    groups = request.param(image=IMAGE)
    groups.first()
    assert len(groups.effects) == 1
    return groups


def fail(groups, error):
    groups.fails_with = error
    groups.work()
    groups.fails_with = None
    assert groups.shard.groups["g"].background_work is None


def test_a_refused_assignment_is_computed_again_only_in_another_epoch(waiting):
    fail(waiting, ErrorCode.UNKNOWN_SERVER_ERROR)
    for _ in range(3):
        waiting.next()
        assert waiting.effects == []
    waiting.other()
    waiting.next()
    assert len(waiting.effects) == 1
    waiting.work()
    group = waiting.shard.groups["g"]
    assert group.assignment_epoch == group.epoch


def test_an_assignment_that_could_not_be_written_for_the_moment_is_computed_again(waiting):
    fail(waiting, ErrorCode.COORDINATOR_NOT_AVAILABLE)
    waiting.next()
    assert len(waiting.effects) == 1
    waiting.work()
    group = waiting.shard.groups["g"]
    assert group.assignment_epoch == group.epoch
