"""Target assignments that are computed beside the shard: which may begin, and which still count.

Their records are appended in portions, the assignment's epoch last. Until then members have the old
epoch; a crash in between leaves an assignment that is due again.

    heartbeat   group.background_work = the effect
    begin       group.background_work = the job; its records are appended only while it is set
    abandon     None: the next heartbeat may begin another, except if the log has refused the
                records (`refused_epoch`)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.outcome import Outcome

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.group import Group
    from wirebroker.coordinator.groups.modern_group import ModernGroup
    from wirebroker.coordinator.outcome import Moment, OnFailure

# Limits of one portion, which takes a few milliseconds to append and apply.
_MOST_ITEMS: Final = 200


class HasGroups(Protocol):
    """The part of a shard that is needed here."""

    groups: dict[str, Group]


class OfGroup(Protocol):
    """An effect or a job."""

    @property
    def group_id(self) -> str:
        """The group."""
        ...


class Job(OfGroup, Protocol):
    """A computation."""

    @property
    def epoch(self) -> int:
        """The group epoch that it is for."""
        ...


GroupT = TypeVar("GroupT", bound="ModernGroup[Any]")
ItemT = TypeVar("ItemT")


def waiting_group(shard: HasGroups, kind: type[GroupT], effect: OfGroup) -> GroupT | None:
    """Return the group of an effect; None if it is gone, or other work has begun."""
    group = shard.groups.get(effect.group_id)
    if not isinstance(group, kind):
        return None
    # If the effect's heartbeat created the group, the replayed group has no work yet.
    if group.background_work is not None and group.background_work is not effect:
        return None
    return group


def assigned_group(shard: HasGroups, kind: type[GroupT], job: Job) -> GroupT | None:
    """Return the group of a job, if its assignment is still wanted."""
    group = shard.groups.get(job.group_id)
    if not isinstance(group, kind) or group.background_work is not job:
        return None
    return group if group.assignment_epoch < job.epoch else None


def abandon(shard: HasGroups, kind: type[ModernGroup[Any]], job: OfGroup) -> None:
    """Allow the next computation, unless it has begun."""
    group = shard.groups.get(job.group_id)
    if isinstance(group, kind) and group.background_work is job:
        group.background_work = None


def abandoning(shard: HasGroups, kind: type[ModernGroup[Any]], job: Job) -> OnFailure:
    """Return what a failed append of a portion does.

    If the log refuses a record, as one that is too large, the same assignment would fail again. So
    the next one is computed in another epoch of the group.
    """

    def on_failure(error: ErrorCode, _now: Moment) -> Outcome:
        group = shard.groups.get(job.group_id)
        is_current = isinstance(group, kind) and group.background_work is job
        if is_current and error is ErrorCode.UNKNOWN_SERVER_ERROR:
            assert isinstance(group, kind)
            group.refused_epoch = job.epoch
        abandon(shard, kind, job)
        return Outcome()

    return on_failure


def portions(
    items: Iterable[ItemT | None], size_of: Callable[[ItemT], int], *, most_size: int
) -> Steps[list[list[ItemT]]]:
    """Divide the changes of an assignment; a portion ends with the item that fills it.

    None is a step of an item that takes several.
    """
    divided: list[list[ItemT]] = []
    size = most_size
    for item in items:
        if item is None:
            yield
            continue
        if size >= most_size or len(divided[-1]) >= _MOST_ITEMS:
            divided.append([])
            size = 0
        divided[-1].append(item)
        size += size_of(item)
        yield
    return divided
