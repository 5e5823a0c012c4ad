"""Steps of members that are computed before the heartbeat that takes them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.consumer_kit import ConsumerGroups, T, topics_image
from tests.support.coordinators.kit import image_of, one_broker, topic
from wirebroker.codecs.errors import ErrorCode
from wirebroker.coordinator.groups.consumer import joining, member_update, prepared_step
from wirebroker.coordinator.groups.consumer.consumer_member import MemberState
from wirebroker.coordinator.groups.consumer.partition_epochs import PartitionEpochs

if TYPE_CHECKING:
    from collections.abc import Callable

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.consumer.heartbeat_request import ConsumerHeartbeat
    from wirebroker.coordinator.groups.consumer.prepared_step import PreparedStep

MANY = 3_000


@pytest.fixture(autouse=True)
def prepares_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepared_step, "_FEW", 0)


class Interrupted(ConsumerGroups):
    """A shard whose state changes while a step is computed.

    Attributes:
        changes: The changes, one before each computation ends.
        steps: The computed steps.
    """

    def __init__(self, *changes: Callable[[ConsumerGroups], Any]) -> None:
        super().__init__(consumer_assignment_interval_ms=0)
        self.changes = [*changes]
        self.steps: list[PreparedStep | None] = []
        self.is_armed = False

    def target_of(self, member_id: str) -> dict[bytes, frozenset[int]]:
        return dict(self.consumer().target[member_id])

    def prepare(self, request: ConsumerHeartbeat) -> PreparedStep | None:
        if not self.is_armed:
            return None
        self.is_armed = False
        work = prepared_step.prepare(self.shard, request)
        while True:
            try:
                next(work)
            except StopIteration as end:
                self.steps.append(end.value)
                return self.steps[-1]
            if self.changes:
                self.changes.pop(0)(self)


def with_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let each computation end with a step."""
    computed = prepared_step._computed

    def interrupted(*arguments: Any) -> Steps[PreparedStep]:
        step = yield from computed(*arguments)
        yield
        return step

    monkeypatch.setattr(prepared_step, "_computed", interrupted)


def joined(groups: ConsumerGroups) -> None:
    """Form a group of two members, of which `a` has to give up partitions for `b`."""
    groups.enter("a", "t")
    groups.enter("b", "t")


def other_topics(groups: ConsumerGroups) -> None:
    image = image_of(*topic("v", 3, partitions=1), base=groups.shard.image)
    groups.shard.apply_metadata(image, has_new_topics=True, changed=["v"])


CHANGES: dict[str, Callable[[ConsumerGroups], Any]] = {
    "another member joins": lambda groups: groups.enter("c", "t"),
    "another member leaves": lambda groups: groups.beat("b", -1),
    "the member leaves": lambda groups: groups.beat("a", -1),
    "the topics change": other_topics,
    "nothing": lambda groups: None,
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("times", [1, 3])
def test_state_that_changes_meanwhile_is_respected(
    monkeypatch: pytest.MonkeyPatch, name: str, times: int
) -> None:
    with_steps(monkeypatch)
    groups = Interrupted(*[CHANGES[name]] * times)
    plain = ConsumerGroups(consumer_assignment_interval_ms=0)
    answers = []
    for each in (groups, plain):
        joined(each)
        if each is plain:
            for _ in range(times):
                CHANGES[name](plain)
        owned = {T: [0, 1, 2]}
        groups.is_armed = each is groups
        answers.append(each.beat("a", 2, owned=owned))
    assert len(groups.steps) == 1
    assert answers[0] == answers[1]
    assert groups.durable() == plain.durable()
    assert groups.reloaded().durable() == groups.durable()


def test_computation_is_given_up_after_some_attempts(monkeypatch: pytest.MonkeyPatch) -> None:
    with_steps(monkeypatch)
    groups = Interrupted(*[lambda groups, n=n: groups.enter(f"c{n}", "t") for n in range(9)])
    joined(groups)
    groups.is_armed = True
    groups.beat("a", 2, owned={T: [0, 1, 2]})
    assert groups.steps == [None]
    assert len(groups.changes) == 9 - prepared_step._MOST_ATTEMPTS


def stays(member_id: str) -> Callable[[ConsumerGroups], Any]:
    return lambda groups: groups.stay(member_id)


def large_group(moving: int) -> Interrupted:
    """Return a group in which the other members `late` and `moving` can take free partitions."""
    groups = Interrupted()
    partitions = 2 * (moving + 2)
    groups.shard.apply_metadata(
        image_of(*topic("w", 3, partitions=partitions), base=groups.shard.image),
        has_new_topics=True,
        changed=["w"],
    )
    for member_id in ("first", "late", *(f"m{number}" for number in range(moving))):
        groups.enter(member_id, "w")
    # The first member, which had all partitions, gives up those of the others.
    groups.stay("first")
    groups.stay("first", owned=groups.target_of("first"))
    return groups


def test_step_survives_moves_of_many_other_members(monkeypatch: pytest.MonkeyPatch) -> None:
    with_steps(monkeypatch)
    groups = large_group(moving=9)
    groups.changes = [stays(f"m{number}") for number in range(9)]
    groups.is_armed = True
    answer = groups.stay("late")
    assert len(groups.changes) == 8, "one computation"
    assert groups.steps != [None]
    assert listed_of(answer) == groups.target_of("late")
    for number in range(1, 9):
        groups.stay(f"m{number}")
    assert groups.consumer().state == "Stable"
    groups.consumer().check()
    assert groups.reloaded().durable() == groups.durable()


def test_step_is_repeated_if_another_member_gets_its_partitions(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_steps(monkeypatch)
    groups = large_group(moving=1)
    group = groups.consumer()

    def take(groups: ConsumerGroups) -> None:
        """Give another member a partition of this member's target, as a new target may do."""
        target = dict(group.target["m0"])
        for topic_id, partitions in group.target["late"].items():
            target[topic_id] = target[topic_id] | {min(partitions)}
        group.target["m0"] = target
        groups.stay("m0")

    groups.changes = [take]
    groups.is_armed = True
    groups.stay("late")
    group.partition_epochs.check(group.members)
    assert groups.consumer_member("late").state is MemberState.UNRELEASED_PARTITIONS
    assert groups.consumer_member("m0").state is MemberState.STABLE


def test_returning_static_member_uses_prepared_records(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[tuple[Any, ...]] = []
    take_over = joining.take_over

    def noted(*arguments: Any) -> Any:
        used.append(arguments)
        return take_over(*arguments)

    monkeypatch.setattr(joining, "take_over", noted)
    groups = ConsumerGroups(consumer_assignment_interval_ms=0)
    groups.enter("a", "t", instance="i")
    groups.beat("a", -2, instance="i")
    answer = groups.enter("b", "t", instance="i")
    assert listed_of(answer) == {T: frozenset({0, 1, 2})}
    assert not used
    groups.shard.check()
    assert groups.reloaded().durable() == groups.durable()


def test_static_member_that_left_meanwhile_returns_without_prepared_records(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with_steps(monkeypatch)
    groups = Interrupted(lambda groups: groups.beat("a", -1, instance="i"))
    groups.enter("a", "t", instance="i")
    groups.beat("a", -2, instance="i")
    groups.is_armed = True
    assert groups.code(groups.enter("b", "t", instance="i")) is ErrorCode.NONE
    assert groups.steps == [None]
    assert [*groups.consumer().members] == ["b"]
    groups.shard.check()


def listed_of(answer: dict[str, Any]) -> dict[bytes, frozenset[int]]:
    topics = answer["assignment"]["topic_partitions"]
    return {entry["topic_id"]: frozenset(entry["partitions"]) for entry in topics}


def test_members_settle_with_prepared_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[bool] = []
    are = prepared_step.StepInputs.are

    def noted(inputs: prepared_step.StepInputs, other: prepared_step.StepInputs) -> bool:
        used.append(are(inputs, other))
        return used[-1]

    monkeypatch.setattr(prepared_step.StepInputs, "are", noted)
    groups = ConsumerGroups(image=topics_image(), consumer_assignment_interval_ms=0)
    for member_id in ("a", "b", "c"):
        groups.enter(member_id, "t", "u")
    groups.settle()
    assert any(used)
    assert groups.reloaded().durable() == groups.durable()


def test_many_topics_are_taken_in_many_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(member_update, "MOST_AT_ONCE", 0)
    names = [f"t{number}" for number in range(MANY)]
    records = [record for number, name in enumerate(names, 1) for record in topic(name, number)]
    groups = ConsumerGroups(image=one_broker(*records))
    groups.enter("a", *names)
    groups.work()
    counts: list[int] = []
    prepare = prepared_step.prepare

    def counted(*arguments: Any) -> Steps[PreparedStep | None]:
        work: Any = prepare(*arguments)
        count = 0
        while True:
            try:
                next(work)
            except StopIteration as end:
                counts.append(count)
                step: PreparedStep | None = end.value
                return step
            count += 1
            yield

    monkeypatch.setattr(prepared_step, "prepare", counted)
    answer = groups.stay("a")
    assert len(answer["assignment"]["topic_partitions"]) == MANY
    # Reconciliation, sorting, the record and the response.
    assert counts[0] >= 4 * MANY // 1_000


def test_owners_of_another_group_are_other_inputs() -> None:
    """A group that was deleted and made again may have the same version of its owners."""
    groups = ConsumerGroups()
    groups.enter("a", "t")
    group = groups.consumer()
    member = groups.consumer_member("a")
    target: tuple[int, dict[bytes, frozenset[int]]] = (1, {})
    inputs = prepared_step.inputs_of(groups.shard, group, member, target, None, has_changed=False)
    assert inputs.are(inputs)
    assert not inputs.are(inputs._replace(owners=PartitionEpochs()))
