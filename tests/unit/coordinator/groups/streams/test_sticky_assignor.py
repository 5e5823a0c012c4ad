"""The sticky assignor; tests/java compares it with Kafka's own class."""

import pytest

from tests.support.harness.step_lines import lines_of_steps
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams.sticky_assignor import sticky
from wirebroker.coordinator.groups.streams.task_members import SubtopologyTasks, TaskMember

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


TASKS = 4_000
# Inputs that have many of one thing each, in one member, process, task or subtopology.
LARGE = {
    "tasks of one subtopology": ([member("a"), member("b")], [SubtopologyTasks("0", TASKS, True)]),
    "subtopologies": (
        [member("a"), member("b")],
        [SubtopologyTasks(f"{number:03}", 8, True) for number in range(500)],
    ),
    "tasks of one member": (
        [member("a", active={"0": range(TASKS)}), member("b", standby={"0": range(TASKS)})],
        [SubtopologyTasks("0", TASKS, True)],
    ),
    "members of one process": (
        [member(f"m{number}", "p") for number in range(TASKS)],
        [SubtopologyTasks("0", 10, True)],
    ),
    "processes": (
        [member(f"m{number}") for number in range(TASKS)],
        [SubtopologyTasks("0", 10, True)],
    ),
    "offsets of one member": (
        [member("a", offsets={"0": dict.fromkeys(range(TASKS), 1)}), member("b")],
        [SubtopologyTasks("0", TASKS, True)],
    ),
    "copies of one task": (
        [member(f"m{number}", offsets={"0": {0: 1}}) for number in range(TASKS)],
        [SubtopologyTasks("0", 1, True)],
    ),
}
# Two milliseconds, or all copies of one task.
MOST_LINES = 30_000
MOST_LINES_PER_COPY = 15


@pytest.mark.parametrize("name", LARGE)
def test_large_assignments_are_made_in_short_steps(name):
    members, subtopologies = LARGE[name]
    counts = lines_of_steps(sticky(members, subtopologies, 1))
    most = max(MOST_LINES, MOST_LINES_PER_COPY * TASKS if name == "copies of one task" else 0)
    assert max(counts) < most
