"""The next step of a member from its current to its target assignment."""

import pytest

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams.streams_member import StreamsMember, TaskState
from wirebroker.coordinator.groups.streams.task_processes import TaskProcesses
from wirebroker.coordinator.groups.streams.task_reconciliation import TaskTarget, reconcile
from wirebroker.coordinator.groups.streams.tasks import AssignedTasks, Tasks

EPOCH = 7


def sets(*partitions):
    return {"0": frozenset(partitions)} if partitions else {}


def since(epoch, *partitions):
    return {"0": dict.fromkeys(partitions, epoch)} if partitions else {}


def member(name="a", process="p", state=TaskState.STABLE, epoch=5, **tasks):
    """Return a member; tasks are active, standby, warmup, and the same with `revoking_`."""

    def assigned(prefix):
        return AssignedTasks(
            since(epoch, *tasks.get(f"{prefix}active", ())),
            sets(*tasks.get(f"{prefix}standby", ())),
            sets(*tasks.get(f"{prefix}warmup", ())),
        )

    return StreamsMember(
        name,
        epoch=epoch,
        previous_epoch=epoch - 1,
        state=state,
        process_id=process,
        assigned=assigned(""),
        revoking=assigned("revoking_"),
    )


def target(active=(), standby=(), warmup=()):
    return Tasks(sets(*active), sets(*standby), sets(*warmup))


def step(before, aim, *others, owned=None):
    processes = TaskProcesses()
    for each in (before, *others):
        processes.replace(None, each)
    return reconcile(before, TaskTarget(EPOCH, aim, owned, processes))


def shown(after):
    tasks = (
        sorted(after.assigned.active.get("0", ())),
        sorted(after.assigned.standby.get("0", ())),
        sorted(after.assigned.warmup.get("0", ())),
    )
    return after.state.name, after.epoch, *tasks


def revoking(after):
    kinds = (after.revoking.active, after.revoking.standby, after.revoking.warmup)
    return [sorted(tasks.get("0", ())) for tasks in kinds]


def test_reconciled_member_stays_as_it_is():
    before = member(epoch=EPOCH, active=[1])
    assert step(before, target(active=[2])) is before


def test_free_tasks_are_taken_in_the_target_epoch():
    after = step(member(active=[1]), target(active=[1, 2], standby=[3]))
    assert shown(after) == ("STABLE", EPOCH, [1, 2], [3], [])
    assert after.previous_epoch == 5
    assert after.assigned.active == {"0": {1: 5, 2: EPOCH}}


def test_tasks_outside_the_target_are_given_up_first():
    after = step(member(active=[1, 2], standby=[3]), target(active=[2, 4]))
    assert shown(after) == ("UNREVOKED_TASKS", 5, [2], [], [])
    assert revoking(after) == [[1], [3], []]
    assert after.revoking.active == {"0": {1: 5}}


def test_tasks_that_the_member_no_longer_reports_are_not_given_up():
    owned = target(active=[2])
    after = step(member(active=[1, 2]), target(active=[2, 4]), owned=owned)
    assert shown(after) == ("STABLE", EPOCH, [2, 4], [], [])


@pytest.mark.parametrize(
    ("owned", "state"),
    [
        (None, "UNREVOKED_TASKS"),
        (target(active=[1, 2]), "UNREVOKED_TASKS"),
        (target(active=[2]), "STABLE"),
        (target(active=[2], standby=[1]), "STABLE"),
    ],
)
def test_member_moves_on_once_it_has_given_up(owned, state):
    before = member(state=TaskState.UNREVOKED_TASKS, active=[2], revoking_active=[1])
    after = step(before, target(active=[2]), owned=owned)
    assert after.state.name == state
    assert (after is before) == (state == "UNREVOKED_TASKS")


def test_member_that_has_to_give_up_more_gets_the_next_epoch():
    before = member(state=TaskState.UNREVOKED_TASKS, active=[2, 3], revoking_active=[1])
    after = step(before, target(active=[2]), owned=target(active=[2, 3]))
    assert shown(after) == ("UNREVOKED_TASKS", 6, [2], [], [])
    assert revoking(after) == [[3], [], []]


def test_active_tasks_of_others_are_not_taken():
    other = member("b", "q", active=[1], revoking_active=[2])
    after = step(member(), target(active=[1, 2, 3]), other)
    assert shown(after) == ("UNRELEASED_TASKS", EPOCH, [3], [], [])
    again = step(after, target(active=[1, 2, 3]), member("b", "q", active=[1]))
    assert shown(again) == ("UNRELEASED_TASKS", EPOCH, [2, 3], [], [])


def test_process_has_one_copy_of_a_task():
    same_process = member("b", "p", standby=[1], active=[2])
    aim = target(active=[1], standby=[2, 3])
    assert shown(step(member(), aim, same_process)) == ("UNRELEASED_TASKS", EPOCH, [], [3], [])
    other_process = member("b", "q", standby=[1], active=[2])
    assert shown(step(member(), aim, other_process)) == ("STABLE", EPOCH, [1], [2, 3], [])


def test_active_task_becomes_standby_at_once():
    after = step(member(active=[1, 2]), target(active=[2], standby=[1]))
    assert shown(after) == ("UNREVOKED_TASKS", 5, [2], [1], [])
    assert revoking(after) == [[1], [], []]


def test_standby_task_becomes_active_when_it_is_free():
    after = step(member(standby=[1, 2]), target(active=[1], standby=[2]))
    assert shown(after) == ("STABLE", EPOCH, [1], [2], [])
    waiting = step(member(standby=[1]), target(active=[1]), member("b", "q", active=[1]))
    assert shown(waiting) == ("UNRELEASED_TASKS", EPOCH, [], [1], [])
    assert revoking(waiting) == [[], [], []]


def test_standby_task_stays_while_others_are_given_up():
    after = step(member(standby=[1, 2]), target(active=[1]))
    assert shown(after) == ("UNREVOKED_TASKS", 5, [], [1], [])
    assert revoking(after) == [[], [2], []]


def test_warmup_and_standby_tasks_change_their_roles_at_once():
    after = step(member(standby=[1], warmup=[2]), target(standby=[2], warmup=[1]))
    assert shown(after) == ("STABLE", EPOCH, [], [2], [1])


def test_warmup_task_waits_for_the_process():
    aim = target(warmup=[1, 2, 3])
    same_process = member("b", "p", active=[1], warmup=[2])
    assert shown(step(member(), aim, same_process)) == ("UNRELEASED_TASKS", EPOCH, [], [], [3])


def test_member_in_an_unknown_state_has_to_join_again():
    before = member(state=TaskState.UNKNOWN, active=[1])
    for owned in (None, target(active=[1])):
        with pytest.raises(KafkaError) as refusal:
            step(before, target(active=[2]), owned=owned)
        assert refusal.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    assert shown(step(before, target(active=[2]), owned=target()))[:2] == ("STABLE", EPOCH)
