"""Compare the assignors of consumer, share and streams groups with Apache Kafka's.

    python -m benchmarks.paths.assignor_comparison [--only TEXT] [--ours-only]

For each assignor and shape, with equal subscriptions: CPU time of a first assignment and of one
after a member has left, in the same run. Ours is the least of three repetitions, with the longest
step. Kafka's classes run in one JVM: the first of 20 repetitions (not compiled yet, as after the
start of a broker) and the least of them, without other threads such as the collector's. Status 1
if ours takes more than 200 ms for 1,000 members and partitions, more than 2 s for 100 members and
100,000 partitions, or more than 20 ms for a step.
"""

from __future__ import annotations

import argparse
import gc
import struct
import sys
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from benchmarks.paths.assignors import Cost, least
from tests.java.java_program import JavaProgram
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS
from wirebroker.coordinator.groups.assignors.simple import assign_shared
from wirebroker.coordinator.groups.streams.sticky_assignor import sticky
from wirebroker.coordinator.groups.streams.task_members import SubtopologyTasks, TaskMember

if TYPE_CHECKING:
    from wirebroker.base.clock import Steps

_THEIR_REPETITIONS: Final = 20
_STEP_MS: Final = 20.0
# (members, topics, partitions of each): target in ms.
_SHAPES: Final = {
    (1_000, 1, 1_000): 200,
    (1_000, 100, 10): 200,
    (100, 10, 10_000): 2_000,
    (100, 1_000, 100): 2_000,
}
_Assigned = Mapping[str, Any]
# Returns the steps to assign partitions to this number of members, after an earlier assignment.
_Assign = Callable[[int, _Assigned], "Steps[Any]"]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--ours-only", action="store_true", help="without Apache Kafka's classes")
    arguments = parser.parse_args()
    # Its pauses depend on the whole process.
    gc.disable()
    program = None if arguments.ours_only else JavaProgram("AssignorTimes")
    print("members x topics x partitions, assignor: first assignment; after a member has left")
    is_met = True
    for shape, target_ms in _SHAPES.items():
        for number, (name, assigner) in enumerate(_KINDS.items()):
            case = f"{shape[0]} x {shape[1]} x {shape[2]}, {name}"
            if arguments.only not in case:
                continue
            costs = ours(assigner(shape[1], shape[2]), shape[0])
            theirs = ("", "") if program is None else times_of(program, number, shape)
            late = [c for c in costs if c.total_ms > target_ms or c.step_ms > _STEP_MS]
            is_met = is_met and not late
            line = "; ".join(f"{cost}{text}" for cost, text in zip(costs, theirs, strict=True))
            print(f"{case}: {line}{' MISSED' if late else ''}", flush=True)
    return 0 if is_met else 1


def ours(assign: _Assign, members: int) -> tuple[Cost, Cost]:
    first, assigned = least(lambda: assign(members, {}))
    left, _ = least(lambda: assign(members - 1, assigned))
    return first, left


def times_of(program: JavaProgram, kind: int, shape: tuple[int, int, int]) -> tuple[str, str]:
    """Return Kafka's times as text."""
    question = struct.pack(">5i", kind, *shape, _THEIR_REPETITIONS)
    _, (answer,) = program.ask(question, 1)
    first, best, left_first, left_best = (ns / 1e6 for ns in struct.unpack(">4q", answer))
    return f", Kafka {first:.1f} to {best:.1f}", f", Kafka {left_first:.1f} to {left_best:.1f}"


# -- the assignors, in the order of AssignorTimes.java --------------------------------------------


def _topic_ids(count: int) -> list[bytes]:
    return [
        struct.pack(">QQ", number * 0x9E3779B97F4A7C15 % (1 << 64), number)
        for number in range(1, count + 1)
    ]


def _subscribed(topic_ids: list[bytes], count: int, assigned: _Assigned) -> list[SubscribedMember]:
    subscription = frozenset(topic_ids)
    names = [f"member-{number}" for number in range(count)]
    return [SubscribedMember(name, None, subscription, assigned.get(name, {})) for name in names]


def _consumer(name: str) -> Callable[[int, int], _Assign]:
    def assigner(topics: int, partitions: int) -> _Assign:
        topic_ids = _topic_ids(topics)
        counts = dict.fromkeys(topic_ids, partitions)
        return lambda members, assigned: ASSIGNORS[name](
            _subscribed(topic_ids, members, assigned), counts
        )

    return assigner


def _simple(topics: int, partitions: int) -> _Assign:
    topic_ids = _topic_ids(topics)
    assignable = dict.fromkeys(topic_ids, range(partitions))
    return lambda members, assigned: assign_shared(
        _subscribed(topic_ids, members, assigned), assignable
    )


def _sticky(subtopologies: int, tasks: int) -> _Assign:
    each = [SubtopologyTasks(str(number), tasks, True) for number in range(subtopologies)]

    def assign(members: int, assigned: _Assigned) -> Steps[Any]:
        inputs = [
            TaskMember(name, f"process-{number}", _active(assigned, name), {}, {})
            for number in range(members)
            for name in [f"member-{number}"]
        ]
        return sticky(inputs, each, 0)

    return assign


def _active(assigned: _Assigned, member_id: str) -> Any:
    tasks = assigned.get(member_id)
    return {} if tasks is None else tasks.active


_KINDS: Final[Mapping[str, Callable[[int, int], _Assign]]] = {
    "range": _consumer("range"),
    "uniform": _consumer("uniform"),
    "simple (share)": _simple,
    "sticky (streams)": _sticky,
}


if __name__ == "__main__":
    sys.exit(main())
