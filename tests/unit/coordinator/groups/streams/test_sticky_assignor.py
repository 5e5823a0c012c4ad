"""The sticky assignor; tests/java compares it with Kafka's own class."""

import pytest

from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams.sticky_assignor import (
    SubtopologyTasks,
    TaskMember,
    sticky,
)

TWO = [SubtopologyTasks("0", 3, False), SubtopologyTasks("1", 2, True)]


def member(name, process=None, active=None, standby=None, offsets=None):
    sets = {key: frozenset(partitions) for key, partitions in (standby or {}).items()}
    return TaskMember(name, process or f"p-{name}", active or {}, sets, offsets or {})


def assign(members, subtopologies=TWO, standby=0):
    return in_one_go(sticky(members, subtopologies, standby))


def flat(tasks):
    return sorted((name, number) for name, numbers in tasks.items() for number in numbers)


def test_tasks_are_spread_over_processes_and_members():
    assignment = assign([member("a"), member("b", "p"), member("c", "p")])
    counts = {name: len(flat(tasks.active)) for name, tasks in assignment.items()}
    assert counts == {"a": 2, "b": 2, "c": 1}
    every = sorted(task for tasks in assignment.values() for task in flat(tasks.active))
    assert every == [("0", 0), ("0", 1), ("0", 2), ("1", 0), ("1", 1)]


def test_members_keep_tasks_up_to_their_share():
    members = [member("a", active={"0": [0, 1, 2], "1": [0, 1]}), member("b")]
    assignment = assign(members)
    assert len(flat(assignment["a"].active)) == 3
    assert set(flat(assignment["a"].active)) <= {("0", n) for n in range(3)} | {("1", 0), ("1", 1)}
    again = assign(
        [member("a", active=assignment["a"].active), member("b", active=assignment["b"].active)]
    )
    assert again == assignment


def test_active_task_goes_to_the_member_with_a_copy():
    members = [member("a"), member("b", standby={"1": [0]}), member("c")]
    assignment = assign(members, [SubtopologyTasks("1", 1, True)])
    assert flat(assignment["b"].active) == [("1", 0)]


def test_present_copy_counts_before_the_most_advanced_one():
    subtopologies = [SubtopologyTasks("1", 1, True)]
    by_offsets = [member("a", offsets={"1": {0: 5}}), member("b", offsets={"1": {0: 9}})]
    assert flat(assign(by_offsets, subtopologies)["b"].active) == [("1", 0)]
    by_copy = [member("a", standby={"1": [0]}), member("b", offsets={"1": {0: 9}})]
    assert flat(assign(by_copy, subtopologies)["a"].active) == [("1", 0)]


def test_only_tasks_with_state_have_standby_tasks_in_other_processes():
    assignment = assign([member("a", "p"), member("b", "p"), member("c")], standby=1)
    every = sorted(task for tasks in assignment.values() for task in flat(tasks.standby))
    assert every == [("1", 0), ("1", 1)]
    for names in (("a", "b"), ("c",)):
        tasks = [task for name in names for task in flat(assignment[name].active)]
        tasks += [task for name in names for task in flat(assignment[name].standby)]
        assert len(set(tasks)) == len(tasks), "a process has one task twice"


def test_standby_tasks_that_have_no_process_are_left_out():
    assignment = assign([member("a"), member("b")], standby=2)
    copies = [task for tasks in assignment.values() for task in flat(tasks.standby)]
    assert sorted(copies) == [("1", 0), ("1", 1)]


def test_former_active_member_becomes_standby():
    members = [member("a", active={"1": [0, 1]}), member("b")]
    assignment = assign(members, [SubtopologyTasks("1", 2, True)], standby=1)
    assert flat(assignment["a"].active) == [("1", 0)]
    assert flat(assignment["a"].standby) == [("1", 1)]


def test_tasks_of_former_subtopologies_do_not_count():
    members = [member("a", active={"9": [7]}, standby={"8": [1]}, offsets={"7": {0: 1}})]
    assert flat(assign(members)["a"].active) == flat({"0": range(3), "1": range(2)})


def test_without_members_there_is_nobody_for_active_tasks():
    with pytest.raises(KafkaError) as refusal:
        assign([])
    assert refusal.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert assign([], []) == {}


def test_long_assignments_have_steps():
    steps = sticky([member("a"), member("b")], [SubtopologyTasks("0", 5_000, True)], 1)
    assert sum(1 for _ in steps) > 20
