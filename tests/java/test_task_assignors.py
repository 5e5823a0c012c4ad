"""The sticky assignor of streams groups against Kafka's own class (TaskAssignors.java).

Groups change at random, and each assignment becomes the present one of the next. Ours is equal to
Kafka's, also where it depends on the order of Java's hash tables and priority queues.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

import pytest

from tests.java.java_program import JavaProgram
from tests.support.harness.budget import Budget
from wirebroker.base.clock import in_one_go
from wirebroker.coordinator.groups.java_collections import (
    hash_order,
    java_order,
    timeline_order,
)
from wirebroker.coordinator.groups.streams.sticky_assignor import sticky
from wirebroker.coordinator.groups.streams.task_members import SubtopologyTasks, TaskMember

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from random import Random

pytestmark = pytest.mark.java

CHANGES = 8
NAMES = ("a", "b", "B", "0", "-", "é", "\uff21", "\U00010400", "Aa", "BB")

Tasks = list[tuple[str, int]]
Assignment = dict[str, tuple[Tasks, Tasks]]


class ChangingGroup:
    """A group, and its topology, that change at random."""

    def __init__(self, random: Random) -> None:
        self.random = random
        self.created = 0
        self.members: dict[str, TaskMember] = {}
        self.standby_count = random.choice((0, 0, 1, 1, 2))
        self.most_tasks = random.choice((1, 4, 30))
        self.subtopologies: list[SubtopologyTasks] = []
        # Of many threads in few processes, or of one thread in each.
        self.processes = random.choice((1, 3, 100))
        for _ in range(random.randint(1, 5)):
            self.add_subtopology()
        for _ in range(random.choice((1, 4, 15, 40))):
            self.join()

    def add_subtopology(self) -> None:
        name = f"{self.random.choice((*NAMES, ''))}{len(self.subtopologies)}"
        count = self.random.randint(1, self.most_tasks)
        self.subtopologies.append(SubtopologyTasks(name, count, self.random.random() < 0.6))
        self.subtopologies.sort(key=lambda each: java_order(each.subtopology_id))

    def enlarge(self) -> None:
        place = self.random.randrange(len(self.subtopologies))
        each = self.subtopologies[place]
        task_count = each.task_count + self.random.randint(1, 3)
        self.subtopologies[place] = each._replace(task_count=task_count)

    def join(self) -> None:
        self.created += 1
        name = f"{self.random.choice(NAMES)}{self.created}"
        process = f"{self.random.choice(NAMES)}{self.random.randrange(self.processes)}"
        self.members[name] = TaskMember(name, process, {}, {}, {})

    def leave(self) -> None:
        if len(self.members) > 1:
            del self.members[self.random.choice(list(self.members))]

    def report_offsets(self) -> None:
        name = self.random.choice(list(self.members))
        each = self.random.choice(self.subtopologies)
        offsets = {
            number: self.random.randrange(3)
            for number in range(each.task_count)
            if self.random.random() < 0.5
        }
        changed = {**self.members[name].offsets, each.subtopology_id: offsets}
        self.members[name] = self.members[name]._replace(offsets=changed)

    def change(self) -> None:
        more = self.add_subtopology if len(self.subtopologies) < 8 else self.enlarge
        changes = [self.join, self.leave, self.enlarge, more, self.report_offsets]
        self.random.choice([*changes, self.join, self.leave])()

    def assigned(self) -> Assignment:
        names = hash_order(in_one_go(timeline_order(self.members)))
        members = [self.members[name] for name in names]
        result = in_one_go(sticky(members, self.subtopologies, self.standby_count))
        return {name: (flat(tasks.active), flat(tasks.standby)) for name, tasks in result.items()}

    def take(self, assignment: Assignment) -> None:
        """Let an assignment be the present one, for most members."""
        for name, (active, standby) in assignment.items():
            if self.random.random() < 0.9:
                self.members[name] = self.members[name]._replace(
                    active=sets(active), standby=sets(standby)
                )

    def question(self) -> bytes:
        parts = [number(self.standby_count), number(len(self.subtopologies))]
        for each in self.subtopologies:
            parts += text(each.subtopology_id), number(each.task_count), number(each.is_stateful)
        parts.append(number(len(self.members)))
        for member in self.members.values():
            parts += text(member.member_id), text(member.process_id)
            parts += tasks(flat(member.active)), tasks(flat(member.standby))
            sums = [
                text(name) + number(partition) + number(offset)
                for name, offsets in member.offsets.items()
                for partition, offset in offsets.items()
            ]
            parts += number(len(sums)), *sums
        return b"".join(parts)


def flat(by_subtopology: Mapping[str, Iterable[int]]) -> Tasks:
    return sorted((name, each) for name, numbers in by_subtopology.items() for each in numbers)


def sets(listed: Tasks) -> dict[str, frozenset[int]]:
    names = {name for name, _ in listed}
    return {name: frozenset(each for other, each in listed if other == name) for name in names}


def number(value: int) -> bytes:
    return struct.pack(">i", value)


def text(value: str) -> bytes:
    return number(len(value.encode())) + value.encode()


def tasks(listed: Tasks) -> bytes:
    return number(len(listed)) + b"".join(text(name) + number(each) for name, each in listed)


class Reader:
    """Reads the answer."""

    def __init__(self, answer: bytes) -> None:
        self._answer = answer
        self._position = 0

    def number(self) -> int:
        (value,) = struct.unpack_from(">i", self._answer, self._position)
        self._position += 4
        return int(value)

    def text(self) -> str:
        length = self.number()
        self._position += length
        return self._answer[self._position - length : self._position].decode()

    def tasks(self) -> Tasks:
        return sorted((self.text(), self.number()) for _ in range(self.number()))


@pytest.fixture(scope="module")
def kafka() -> Iterator[JavaProgram]:
    program = JavaProgram("TaskAssignors")
    yield program
    program.close()


def test_assignment_of_tasks_equals_that_of_kafka(
    kafka: JavaProgram, pytestconfig: pytest.Config
) -> None:
    budget = Budget(pytestconfig, seconds=1)
    for _ in budget.rounds():
        group = ChangingGroup(budget.random)
        for _ in range(CHANGES):
            status, (answer,) = kafka.ask(group.question(), 1)
            assert status == 0, answer.decode()
            reader = Reader(answer)
            expected = {name: (reader.tasks(), reader.tasks()) for name in group.members}
            assert group.assigned() == expected, f"seed {budget.seed}: {group.members}"
            group.take(expected)
            group.change()
