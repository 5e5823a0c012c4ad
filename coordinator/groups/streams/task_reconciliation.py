"""The next step of a member from its current to its target assignment.

    has tasks outside its target   give them up first: UNREVOKED_TASKS, epoch unchanged
    it has given them up           the target's epoch, and the tasks that are free;
                                   UNRELEASED_TASKS while others are not, else STABLE

A task is free if no process has it as active task, and this process has no copy of it in another
member. A member may change the role of its own copy at once. A standby task that becomes active
stays standby until its former process has released it, so that its state stays warm.

Source: Kafka's CurrentAssignmentBuilder; KIP-1071.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.streams.streams_member import StreamsMember, TaskState
from wirebroker.coordinator.groups.streams.tasks import (
    NO_PARTITIONS,
    NOTHING_ASSIGNED,
    AssignedTasks,
    Tasks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping
    from collections.abc import Set as AbstractSet

    from wirebroker.coordinator.groups.streams.task_processes import TaskProcesses
    from wirebroker.coordinator.groups.streams.tasks import TaskSets

_Sets = dict[str, set[int]]
Numbers: TypeAlias = "AbstractSet[int]"
_NO_EPOCHS: Final[Mapping[int, int]] = {}


class TaskTarget(NamedTuple):
    """What a member is to reach.

    Attributes:
        epoch: The assignment epoch.
        owned: The tasks that the member reports; None: not reported.
        processes: The processes that have tasks.
    """

    epoch: int
    tasks: Tasks
    owned: Tasks | None
    processes: TaskProcesses


def reconcile(member: StreamsMember, target: TaskTarget) -> StreamsMember:
    """Return the member after its next step, or the same if there is none.

    Raises:
        KafkaError: FENCED_MEMBER_EPOCH: its state was written by a later version, so it has to
            rejoin.
    """
    if member.state is TaskState.STABLE:
        if member.epoch == target.epoch:
            return member
        return _Step(member, target).next(member.epoch)
    if member.state is TaskState.UNREVOKED_TASKS:
        if _has_not_released(target.owned, member.revoking):
            return member
        return _Step(member, target).next(member.epoch + 1)
    if member.state is TaskState.UNRELEASED_TASKS:
        return _Step(member, target).next(member.epoch)
    if target.owned is None or not target.owned.is_empty:
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The streams group member is in a unknown state. The member must abandon all its tasks "
            "and rejoin.",
        )
    return _Step(member, target).next(target.epoch)


def _has_not_released(owned: Tasks | None, revoking: AssignedTasks) -> bool:
    """Return whether the member reports any of these tasks; unreported ones are owned."""
    return owned is None or owned.has_any_of(revoking)


class _Difference:
    """Tasks of one role: those that stay, that are to be given up, and that can be added."""

    __slots__ = ("added", "current", "is_unreleased", "kept", "revoked")

    def __init__(
        self,
        current: Mapping[str, Collection[int]],
        target: TaskSets,
        taken: Callable[[str, Numbers], Numbers],
    ) -> None:
        """Compare tasks; `taken` returns those that are not free."""
        self.current = current
        self.kept: _Sets = {}
        self.revoked: _Sets = {}
        self.added: _Sets = {}
        # Whether tasks of the target still belong to others.
        self.is_unreleased = False
        for subtopology in {**target, **current}:
            wanted = target.get(subtopology, NO_PARTITIONS)
            have = set(current.get(subtopology, ()))
            missing = wanted - have
            free = set(missing - taken(subtopology, missing)) if missing else set[int]()
            self.is_unreleased = self.is_unreleased or len(free) < len(missing)
            for sets, partitions in (
                (self.kept, have & wanted),
                (self.revoked, have - wanted),
                (self.added, free),
            ):
                if partitions:
                    sets[subtopology] = partitions

    def grant(self, subtopology: str, partitions: Collection[int]) -> set[int]:
        """Let some of the tasks that can be added stay; return those."""
        added = self.added.get(subtopology)
        granted = added.intersection(partitions) if added else set[int]()
        if granted:
            _discard(self.added, subtopology, granted)
            self.kept.setdefault(subtopology, set()).update(granted)
        return granted

    def result(self, *, is_revoking: bool) -> TaskSets:
        """Return the member's tasks after the step."""
        sets = self.kept if is_revoking else _union(self.kept, self.added)
        return {name: frozenset(partitions) for name, partitions in sets.items()}


class _Step:
    """A step that is being computed."""

    __slots__ = ("_active", "_member", "_standby", "_target", "_warmup")

    def __init__(self, member: StreamsMember, target: TaskTarget) -> None:
        self._member = member
        self._target = target
        assigned, tasks = member.assigned, target.tasks
        self._active = _Difference(assigned.active, tasks.active, self._taken_active)
        self._standby = _Difference(assigned.standby, tasks.standby, self._taken_standby)
        self._warmup = _Difference(assigned.warmup, tasks.warmup, self._taken_warmup)

    def next(self, epoch: int) -> StreamsMember:
        """Return the member; `epoch` is its epoch while it gives up tasks."""
        self._demote()
        _convert(self._standby, self._warmup)
        _convert(self._warmup, self._standby)
        for copies in (self._standby, self._warmup):
            for subtopology, partitions in self._target.tasks.active.items():
                _discard(copies.revoked, subtopology, partitions)
        revoking = self._revoking()
        is_revoking = not revoking.is_empty and _has_not_released(self._target.owned, revoking)
        self._keep_promoted(is_revoking=is_revoking)
        assigned = AssignedTasks(
            self._active_epochs(is_revoking=is_revoking),
            self._standby.result(is_revoking=is_revoking),
            self._warmup.result(is_revoking=is_revoking),
        )
        if is_revoking:
            return self._member.with_epoch(
                epoch, state=TaskState.UNREVOKED_TASKS, assigned=assigned, revoking=revoking
            )
        differences = (self._active, self._standby, self._warmup)
        is_unreleased = any(each.is_unreleased for each in differences)
        return self._member.with_epoch(
            self._target.epoch,
            state=TaskState.UNRELEASED_TASKS if is_unreleased else TaskState.STABLE,
            assigned=assigned,
            revoking=NOTHING_ASSIGNED,
        )

    # -- tasks of others ---------------------------------------------------------------------

    def _taken_active(self, subtopology: str, partitions: Numbers) -> Numbers:
        owners = self._target.processes.of_active(subtopology)
        return (
            (owners.keys() & partitions)
            | self._standby_of_others(subtopology, partitions)
            | self._warmup_of_others(subtopology, partitions)
        )

    def _taken_standby(self, subtopology: str, partitions: Numbers) -> Numbers:
        own = self._member.assigned.active.get(subtopology, _NO_EPOCHS)
        return (
            (self._active_of_process(subtopology, partitions) - own.keys())
            | self._of_process(self._target.processes.of_standby(subtopology), partitions)
            | self._warmup_of_others(subtopology, partitions)
        )

    def _taken_warmup(self, subtopology: str, partitions: Numbers) -> Numbers:
        return (
            self._active_of_process(subtopology, partitions)
            | self._standby_of_others(subtopology, partitions)
            | self._of_process(self._target.processes.of_warmup(subtopology), partitions)
        )

    def _active_of_process(self, subtopology: str, partitions: Numbers) -> Numbers:
        """Return the tasks that this process has as active tasks."""
        owners, process_id = self._target.processes.of_active(subtopology), self._member.process_id
        return {each for each in owners.keys() & partitions if owners[each] == process_id}

    def _of_process(self, owners: Mapping[int, Collection[str]], partitions: Numbers) -> Numbers:
        """Return the tasks of which this process has a copy."""
        process_id = self._member.process_id
        return {each for each in owners.keys() & partitions if process_id in owners[each]}

    def _standby_of_others(self, subtopology: str, partitions: Numbers) -> Numbers:
        """Return the standby tasks of other members of this process."""
        copies = self._of_process(self._target.processes.of_standby(subtopology), partitions)
        return copies - self._member.assigned.standby.get(subtopology, NO_PARTITIONS)

    def _warmup_of_others(self, subtopology: str, partitions: Numbers) -> Numbers:
        copies = self._of_process(self._target.processes.of_warmup(subtopology), partitions)
        return copies - self._member.assigned.warmup.get(subtopology, NO_PARTITIONS)

    # -- changes of role ---------------------------------------------------------------------

    def _demote(self) -> None:
        """Let active tasks become standby tasks at once."""
        for subtopology, partitions in self._active.current.items():
            self._standby.grant(subtopology, partitions)

    def _keep_promoted(self, *, is_revoking: bool) -> None:
        """Keep the copies of tasks that are to become active, and do not in this step."""
        for copies in (self._standby, self._warmup):
            for subtopology, partitions in copies.current.items():
                wanted = self._target.tasks.active.get(subtopology, NO_PARTITIONS)
                promoted = set[int]() if is_revoking else self._active.added.get(subtopology, set())
                waiting = wanted.intersection(partitions) - promoted
                if waiting:
                    copies.kept.setdefault(subtopology, set()).update(waiting)

    # -- result ------------------------------------------------------------------------------

    def _revoking(self) -> AssignedTasks:
        current = self._member.assigned.active
        return AssignedTasks(
            {
                subtopology: {each: current[subtopology][each] for each in partitions}
                for subtopology, partitions in self._active.revoked.items()
            },
            _frozen(self._standby.revoked),
            _frozen(self._warmup.revoked),
        )

    def _active_epochs(self, *, is_revoking: bool) -> dict[str, dict[int, int]]:
        """Return the active tasks after the step, with the epochs in which they were assigned."""
        current, epoch = self._member.assigned.active, self._target.epoch
        after: dict[str, dict[int, int]] = {}
        for subtopology, partitions in self._active.result(is_revoking=is_revoking).items():
            epochs = after[subtopology] = dict.fromkeys(partitions, epoch)
            before = current.get(subtopology, _NO_EPOCHS)
            epochs.update((each, before[each]) for each in before.keys() & partitions)
        return after


def _convert(outgoing: _Difference, incoming: _Difference) -> None:
    """Let the member's copies of one role take the other role at once."""
    for subtopology, partitions in outgoing.current.items():
        granted = incoming.grant(subtopology, partitions)
        if granted:
            _discard(outgoing.revoked, subtopology, granted)


def _discard(sets: _Sets, subtopology: str, removed: Numbers) -> None:
    partitions = sets.get(subtopology)
    if partitions is not None:
        partitions -= removed
        if not partitions:
            del sets[subtopology]


def _union(first: _Sets, second: _Sets) -> _Sets:
    return {
        subtopology: first.get(subtopology, set()) | second.get(subtopology, set())
        for subtopology in {**first, **second}
    }


def _frozen(sets: _Sets) -> TaskSets:
    return {subtopology: frozenset(partitions) for subtopology, partitions in sets.items()}
