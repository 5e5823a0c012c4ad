"""The assignors against Kafka's own classes, by one Java process (Assignors.java).

Groups change at random, and each assignment becomes the present one of the next. Ours is equal to
Kafka's but for one case: if all subscriptions are equal, `uniform` gives out partitions by topic in
the order of a hash set in Kafka, and in the order of topic ids here. With ids for which both are
the same, the assignments are equal; with others, the loads and the numbers of moves. `simple` is
equal for different subscriptions and few partitions; otherwise it shares partitions as evenly.
"""

from __future__ import annotations

import itertools
import struct
from collections import Counter
from typing import TYPE_CHECKING

import pytest

from tests.java.java_program import JavaProgram
from tests.support.coordinators.assignor_kit import check_assignment, load, lost, with_targets
from tests.support.harness.budget import Budget
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import KafkaError
from wirebroker.coordinator.groups.assignors.assignor import (
    SubscribedMember,
)
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS
from wirebroker.coordinator.groups.assignors.in_steps import signed_halves
from wirebroker.coordinator.groups.assignors.simple import assign_shared

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from random import Random

    from wirebroker.coordinator.groups.assignors.assignor import GroupAssignment

pytestmark = pytest.mark.java

KINDS = {"range": 0, "uniform": 1, "simple": 2}
CHANGES = 8
# A Java hash set of up to 15 topics iterates over ids below 16 in their order.
MOST_TOPICS = 15
# Likewise for partitions.
MOST_ORDERED_PARTITIONS = 15
# In the order of Python and of Java differently: a surrogate pair and a letter above it.
NAMES = ("a", "b", "B", "0", "-", "é", "\uff21", "\U00010400")


class JavaAssignors:
    """A running Assignors."""

    def __init__(self, program: JavaProgram) -> None:
        self._program = program

    def __call__(
        self,
        name: str,
        members: Sequence[SubscribedMember],
        counts: Mapping[bytes, int],
        *,
        are_equal: bool,
    ) -> GroupAssignment | str:
        """Return Kafka's assignment without empty entries, or its exception."""
        topics = sorted(
            counts.keys() | {topic for member in members for topic in member.target},
            key=signed_halves,
        )
        question = struct.pack(">b?i", KINDS[name], are_equal, len(topics))
        for topic in topics:
            question += topic + struct.pack(">i", counts.get(topic, -1))
        question += struct.pack(">i", len(members))
        question += b"".join(encoded(member, topics) for member in members)
        status, (answer,) = self._program.ask(question, 1)
        if status:
            return answer.decode()
        numbers = (number for (number,) in struct.iter_unpack(">i", answer))
        return {
            member.member_id: {
                topics[next(numbers)]: frozenset(next(numbers) for _ in range(next(numbers)))
                for _ in range(next(numbers))
            }
            for member in members
        }


def encoded(member: SubscribedMember, topics: Sequence[bytes]) -> bytes:
    names = (member.member_id, member.instance_id or "")
    question = b"".join(struct.pack(">i", len(text.encode())) + text.encode() for text in names)
    numbers = [len(member.topic_ids), *map(topics.index, member.topic_ids), len(member.target)]
    for topic in sorted(member.target, key=signed_halves):
        partitions = member.target[topic]
        numbers += [topics.index(topic), len(partitions), *partitions]
    return question + struct.pack(f">{len(numbers)}i", *numbers)


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaAssignors]:
    program = JavaProgram("Assignors")
    yield JavaAssignors(program)
    program.close()


class ChangingGroup:
    """A group, and topics, that change at random."""

    def __init__(self, random: Random, *, are_equal: bool, has_random_ids: bool) -> None:
        self.random = random
        self.are_equal = are_equal
        self.has_random_ids = has_random_ids
        self.created = 0
        self.counts: dict[bytes, int] = {}
        self.members: list[SubscribedMember] = []
        self.subscription: frozenset[bytes] = frozenset()
        # Some groups have one partition for each topic, some have many.
        self.most_partitions = random.choice((1, 4, 30))
        for _ in range(random.randint(1, MOST_TOPICS - CHANGES)):
            self.create_topic()
        self.resubscribe()
        for _ in range(random.randint(1, 12)):
            self.join()
        if random.random() < 0.5:
            self.own_at_random()

    def change(self) -> None:
        changes = [self.join, self.leave, self.enlarge, self.create_topic, self.resubscribe]
        self.random.choice([*changes, self.join, self.leave])()

    def join(self) -> None:
        self.created += 1
        name = f"{self.random.choice(NAMES)}{self.created}"
        instance_id = f"{self.random.choice(NAMES)}{self.created}"
        self.members.insert(
            self.random.randint(0, len(self.members)),
            SubscribedMember(
                name,
                instance_id if self.random.random() < 0.4 else None,
                self.subscription if self.are_equal else self.some_topics(),
                {},
            ),
        )

    def leave(self) -> None:
        if len(self.members) > 1:
            self.members.pop(self.random.randrange(len(self.members)))

    def create_topic(self) -> None:
        topic = (len(self.counts) + 1).to_bytes(16)
        self.counts[self.random.randbytes(16) if self.has_random_ids else topic] = (
            self.random.randint(1, self.most_partitions)
        )

    def enlarge(self) -> None:
        topic = self.random.choice(list(self.counts))
        self.counts[topic] += self.random.randint(1, 3)

    def resubscribe(self) -> None:
        self.subscription = self.some_topics()
        for number, member in enumerate(self.members):
            if self.are_equal:
                self.members[number] = member._replace(topic_ids=self.subscription)
            elif self.random.random() < 0.3:
                self.members[number] = member._replace(topic_ids=self.some_topics())

    def some_topics(self) -> frozenset[bytes]:
        share = self.random.choice((0.2, 0.6, 1))
        return frozenset(topic for topic in self.counts if self.random.random() < share)

    def own_at_random(self) -> None:
        """Let an unbalanced assignment be the present one."""
        favorites = self.random.sample(self.members, self.random.randint(1, len(self.members)))
        owned: dict[str, dict[bytes, set[int]]] = {each.member_id: {} for each in self.members}
        for topic, count in self.counts.items():
            for number in range(count):
                owner = owned[self.random.choice(favorites).member_id]
                if self.random.random() < 0.8:
                    owner.setdefault(topic, set()).add(number)
        self.members = with_targets(
            self.members,
            {
                member_id: {topic: frozenset(numbers) for topic, numbers in owner.items()}
                for member_id, owner in owned.items()
            },
        )

    def assigned(self, name: str) -> GroupAssignment:
        return in_one_go(ASSIGNORS[name](self.members, self.counts))

    @property
    def is_homogeneous(self) -> bool:
        return len({member.topic_ids for member in self.members}) == 1


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("are_equal", [True, False])
def test_assignment_equals_that_of_kafka(
    kafka: JavaAssignors, pytestconfig: pytest.Config, name: str, are_equal: bool
) -> None:
    budget = Budget(pytestconfig, seconds=2)
    for _ in budget.rounds():
        group = ChangingGroup(budget.random, are_equal=are_equal, has_random_ids=False)
        for _ in range(CHANGES):
            is_homogeneous = group.is_homogeneous
            expected = kafka(name, group.members, group.counts, are_equal=is_homogeneous)
            assignment = group.assigned(name)
            assert assignment == expected, f"seed {budget.seed}: {group.members} {group.counts}"
            group.members = with_targets(group.members, assignment)
            group.change()


@pytest.mark.parametrize("name", ASSIGNORS)
def test_assignment_for_any_topic_ids_equals_that_of_kafka(
    kafka: JavaAssignors, pytestconfig: pytest.Config, name: str
) -> None:
    budget = Budget(pytestconfig, seconds=1)
    for _ in budget.rounds():
        group = ChangingGroup(budget.random, are_equal=False, has_random_ids=True)
        for _ in range(CHANGES):
            # The order of topics that uniform has only for equal subscriptions plays no role.
            if name == "range" or not group.is_homogeneous:
                expected = kafka(name, group.members, group.counts, are_equal=False)
                assert group.assigned(name) == expected, f"seed {budget.seed}"
            group.members = with_targets(group.members, group.assigned(name))
            group.change()


def test_uniform_moves_as_many_partitions_as_kafka(
    kafka: JavaAssignors, pytestconfig: pytest.Config
) -> None:
    budget = Budget(pytestconfig, seconds=1)
    for _ in budget.rounds():
        group = ChangingGroup(budget.random, are_equal=True, has_random_ids=True)
        for _ in range(CHANGES):
            members, counts = group.members, group.counts
            theirs = kafka("uniform", members, counts, are_equal=True)
            assert isinstance(theirs, dict), theirs
            assignment = group.assigned("uniform")
            check_assignment(members, counts, assignment)
            assert loads(assignment) == loads(theirs), f"seed {budget.seed}"
            assert moves(members, assignment) == moves(members, theirs), f"seed {budget.seed}"
            group.members = with_targets(members, assignment)
            group.change()


@pytest.mark.parametrize("are_equal", [True, False])
def test_simple_shares_partitions_as_kafka(
    kafka: JavaAssignors, pytestconfig: pytest.Config, are_equal: bool
) -> None:
    budget = Budget(pytestconfig, seconds=1)
    for _ in budget.rounds():
        group = ChangingGroup(budget.random, are_equal=are_equal, has_random_ids=False)
        for _ in range(CHANGES):
            members, counts = group.members, group.counts
            theirs = kafka("simple", members, counts, are_equal=group.is_homogeneous)
            assert isinstance(theirs, dict), theirs
            partitions = {topic: range(count) for topic, count in counts.items()}
            assignment = in_one_go(assign_shared(members, partitions))
            subscribed = frozenset[bytes]().union(*(member.topic_ids for member in members))
            expected, ours = (shared(each, subscribed) for each in (theirs, assignment))
            is_ordered = max(counts.values()) <= MOST_ORDERED_PARTITIONS
            if is_ordered and not group.is_homogeneous:
                assert ours == expected, f"seed {budget.seed}: {members} {counts}"
            # In an unlucky order, some members get fewer partitions than they lack.
            assert sharing(ours).keys() == sharing(expected).keys(), f"seed {budget.seed}"
            assert max(sharing(ours).values(), default=0) == max(
                sharing(expected).values(), default=0
            ), f"seed {budget.seed}"
            group.members = with_targets(members, assignment)
            group.change()


def shared(assignment: GroupAssignment, topics: frozenset[bytes]) -> GroupAssignment:
    """Return an assignment without what Kafka keeps of topics without subscribers."""
    return {
        member_id: {topic: owned[topic] for topic in owned if topic in topics and owned[topic]}
        for member_id, owned in assignment.items()
    }


def sharing(assignment: GroupAssignment) -> Counter[tuple[bytes, int]]:
    """Return the number of members of each partition."""
    return Counter(
        (topic, number)
        for owned in assignment.values()
        for topic, numbers in owned.items()
        for number in numbers
    )


def test_balancing_ends_after_as_many_passes_as_in_kafka(kafka: JavaAssignors) -> None:
    """Each topic has two neighbors of a row as subscribers; its first member has far too many."""
    row = [(60 - number).to_bytes(16) for number in range(40)]
    exclusive = (99).to_bytes(16)
    counts = {**dict.fromkeys(row, 200), exclusive: 5_000}
    neighbors = [{exclusive, row[0]}, *map(set, itertools.pairwise(row)), {row[-1]}]
    members = [
        SubscribedMember(f"m{number}", None, frozenset(topics), {})
        for number, topics in enumerate(neighbors)
    ]
    owned = {f"m{number}": {topic: frozenset(range(200))} for number, topic in enumerate(row)}
    for _ in range(3):
        members = with_targets(members, owned)
        expected = kafka("uniform", members, counts, are_equal=False)
        before, owned = owned, in_one_go(ASSIGNORS["uniform"](members, counts))
        assert owned == expected
        assert owned != before


def loads(assignment: GroupAssignment) -> dict[str, int]:
    return {member_id: load(owned) for member_id, owned in assignment.items()}


def moves(members: Sequence[SubscribedMember], assignment: GroupAssignment) -> dict[str, int]:
    return {member_id: len(gone) for member_id, gone in lost(members, assignment).items()}


@pytest.mark.parametrize("name", ASSIGNORS)
@pytest.mark.parametrize("are_equal", [True, False])
def test_unknown_topic_is_an_error_of_kafka_too(
    kafka: JavaAssignors, name: str, are_equal: bool
) -> None:
    known, unknown = (number.to_bytes(16) for number in (1, 2))
    subscriptions = [{known, unknown}, {known, unknown} if are_equal else {known}]
    members = [
        SubscribedMember(f"m{number}", None, frozenset(topics), {})
        for number, topics in enumerate(subscriptions)
    ]
    # The topic's place in the question is known, its partition count is not.
    members[0] = members[0]._replace(target={unknown: frozenset()})
    answer = kafka(name, members, {known: 1}, are_equal=are_equal)
    assert isinstance(answer, str)
    assert "PartitionAssignorException" in answer
    with pytest.raises(KafkaError, match="which does not exist"):
        in_one_go(ASSIGNORS[name](members, {known: 1}))
