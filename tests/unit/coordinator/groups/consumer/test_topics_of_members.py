"""The topics of a group, compared with those of its members, and the hashes of topics."""

from __future__ import annotations

from random import Random

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups
from tests.support.coordinators.kit import image_of, one_broker, topic
from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups import topic_hashes
from wirebroker.coordinator.groups.consumer.consumer_member import ConsumerMember
from wirebroker.coordinator.groups.consumer.subscriptions import ResolvedRegex, Subscriptions
from wirebroker.coordinator.groups.shard.topic_lookup import HashTopics
from wirebroker.coordinator.groups.topic_hashes import TopicHashes

SETS = [frozenset(names) for names in ((), ("t",), ("u",), ("t", "u"), ("t", "v"), ("w",))]
REGEXES = ["", "", "r", "s"]


@pytest.mark.parametrize("seed", range(20))
def test_topics_after_a_change_are_those_of_the_members(seed):
    random = Random(seed)
    subscriptions = Subscriptions()
    subscriptions.resolved["r"] = ResolvedRegex(frozenset(("v", "x")), 1, 1)
    members: dict[str, ConsumerMember] = {}

    def other(member_id: str) -> ConsumerMember:
        names = frozenset(random.choice(SETS))
        return ConsumerMember(member_id, topic_names=names, topic_regex=random.choice(REGEXES))

    def topics_of(*all_members: ConsumerMember) -> set[str]:
        return {topic for member in all_members for topic in subscriptions.topics_of(member)}

    for _ in range(60):
        member_id = random.choice("abcd")
        old = members.get(member_id)
        new = other(member_id) if random.random() < 0.7 else None
        leaving = [] if old is None else [old]
        joining = [] if new is None else [new]
        others = [member for key, member in members.items() if key != member_id]
        planned = subscriptions.topics(without=leaving, including=joining)
        assert planned == topics_of(*others, *joining)
        subscriptions.replace(old, new)
        members.pop(member_id, None)
        if new is not None:
            members[member_id] = new
        subscriptions.check(members.values())
        assert subscriptions.topics() == planned
    assert subscriptions.topics(without=members.values()) == set()


@pytest.mark.parametrize("changed", [["t"], ["w"], [f"x{number}" for number in range(2_000)]])
def test_hash_of_unchanged_topics_is_remembered(changed, monkeypatch):
    image = one_broker(*topic("t", 1, partitions=1), *topic("u", 2, partitions=1))
    hashes, subscriptions = TopicHashes(image), Subscriptions()
    subscriptions.replace(None, ConsumerMember("a", topic_names=frozenset({"t", "u"})))
    joining = ConsumerMember("b", topic_names=frozenset({"u", "t"}))
    before = subscriptions.hash_of(subscriptions.topics(), hashes)
    computed = []
    of_group = TopicHashes.of_group

    def noted(*arguments):
        computed.append(arguments)
        return of_group(*arguments)

    monkeypatch.setattr(TopicHashes, "of_group", noted)
    assert subscriptions.hash_of(subscriptions.topics(including=[joining]), hashes) == before
    assert subscriptions.is_hashed(hashes)
    assert not computed
    grown = image_of(*topic("t", 1, partitions=3), base=image)
    hashes.follow(grown if "t" in changed else image, changed)
    assert subscriptions.is_hashed(hashes) == ("w" in changed)
    after = subscriptions.hash_of(subscriptions.topics(), hashes)
    assert (after == before) == ("t" not in changed)
    assert bool(computed) == ("w" not in changed)
    subscriptions.replace(None, ConsumerMember("c", topic_names=frozenset({"v"})))
    assert not subscriptions.is_hashed(hashes)


def test_hash_is_computed_again_after_many_changes():
    hashes, subscriptions = TopicHashes(one_broker()), Subscriptions()
    subscriptions.replace(None, ConsumerMember("a", topic_names=frozenset({"t"})))
    for count, is_known in ((topic_hashes._MOST_CHANGES, True), (100, False)):
        subscriptions.hash_of(subscriptions.topics(), hashes)
        for _ in range(count):
            hashes.follow(one_broker(), ["u"])
        assert subscriptions.is_hashed(hashes) == is_known


def test_members_with_equal_subscriptions_share_them():
    groups = ConsumerGroups()
    groups.enter("a", "t", "u")
    groups.enter("b", "u", "t")
    loaded = groups.reloaded(compacted=True)
    for one in (groups, loaded):
        first, second = (one.consumer_member(member_id) for member_id in "ab")
        assert first.topic_names is second.topic_names


def test_a_topic_is_hashed_again_after_it_has_changed():
    image = one_broker(*topic("t", 1), *topic("u", 2))
    hashes = TopicHashes(image)
    before = hashes.of_group({"t", "u", "missing"})
    assert hashes.of_group({"t", "u"}) == before
    grown = image_of(*topic("t", 1, partitions=2)[2:], *topic("missing", 3), base=image)
    hashes.follow(grown, ["t", "missing"])
    assert hashes.of_group({"t", "u"}) == TopicHashes(grown).of_group({"t", "u"}) != before
    assert hashes.of_group({"missing"}) == TopicHashes(grown).of_group({"missing"}) != 0


def test_topics_that_change_while_they_are_hashed_get_their_new_hashes():
    image = one_broker(*topic("t", 1), *topic("u", 2))
    hashes = TopicHashes(image)
    steps = hashes.add({"t", "u"})
    next(steps)
    grown = image_of(*topic("t", 1, partitions=2)[2:], *topic("u", 2, partitions=2)[2:], base=image)
    hashes.follow(grown, ["t", "u"])
    in_one_go(steps)
    assert hashes.of_group({"t", "u"}) == TopicHashes(grown).of_group({"t", "u"})


def test_few_missing_topics_are_remembered(monkeypatch):
    monkeypatch.setattr(topic_hashes, "_MOST_MISSING", 2)
    hashes = TopicHashes(one_broker())
    names = {"a", "b", "c"}
    in_one_go(hashes.add(names))
    assert len(hashes.unknown(names)) == 2
    assert hashes.of_group(names) == 0


def test_topics_of_a_large_group_are_hashed_after_a_load():
    names = [f"n{number}" for number in range(600)]
    groups = ConsumerGroups()
    groups.enter("a", "t", *names)
    loaded = groups.reloaded()
    assert loaded.effects == [HashTopics("g")]
    assert loaded.shard.topic_hashes.unknown(set(names))
    loaded.work()
    assert not loaded.shard.topic_hashes.unknown({"t", *names})
