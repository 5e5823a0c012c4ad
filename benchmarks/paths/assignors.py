"""The cost of new target assignments of large consumer groups.

    python -m benchmarks.paths.assignors [--only TEXT] [--collect]

For each assignor and shape: CPU time in all and of the longest step, of a first assignment, of one
after a member left, and of one after nothing has changed. The least of three repetitions. Targets:
200 ms for 1,000 members and 1,000 partitions, 2 s for 100 members and 100,000 partitions, 20 ms for
a step. Status 1 if a target is missed. The case with 5 million subscriptions has only the target of
a step. The cycle collector is off, because its pauses depend on the whole process; --collect turns
it on, with a broker's settings.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from random import Random
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from wirebroker.base.gc_tuning import GarbagePolicy
from wirebroker.coordinator.groups.assignors.assignor import SubscribedMember
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from wirebroker.base.clock import Steps
    from wirebroker.coordinator.groups.assignors.assignor import Assignor

ResultT = TypeVar("ResultT")

_REPETITIONS: Final = 3
_STEP_MS: Final = 20.0
_NO_TARGET_MS: Final = float("inf")
_LARGEST: Final = "100 x 100000 x 1, each its own"
# (members, topics, partitions of each): target in ms.
_SHAPES: Final = {
    (1_000, 1, 1_000): 200,
    (1_000, 10, 100): 200,
    (1_000, 1_000, 1): 200,
    (100, 1, 100_000): 2_000,
    (100, 1_000, 100): 2_000,
    (100, 10_000, 10): 2_000,
    (100, 100_000, 1): 2_000,
}


class Cost(NamedTuple):
    """CPU time of an assignment."""

    total_ms: float
    step_ms: float

    def __str__(self) -> str:
        return f"{self.total_ms:7.1f} ms (step {self.step_ms:4.1f})"


def equal(topic_ids: list[bytes], _members: int, _random: Random) -> Iterable[frozenset[bytes]]:
    return [frozenset(topic_ids)]


def two(topic_ids: list[bytes], _members: int, _random: Random) -> Iterable[frozenset[bytes]]:
    return [frozenset(topic_ids), frozenset(topic_ids[: len(topic_ids) // 2 or 1]), frozenset()]


def each(topic_ids: list[bytes], members: int, random: Random) -> Iterable[frozenset[bytes]]:
    return [
        frozenset(random.sample(topic_ids, max(1, len(topic_ids) * random.randint(1, 9) // 10)))
        for _ in range(members)
    ]


def skewed(topic_ids: list[bytes], members: int, random: Random) -> Iterable[frozenset[bytes]]:
    """Give one member the only subscription to some topics, so that it has more than its share."""
    exclusive = frozenset(topic_ids[: len(topic_ids) // 3])
    return [frozenset(topic_ids), *[frozenset(topic_ids) - exclusive] * (members - 1)]


_SUBSCRIPTIONS: Final[
    dict[str, Callable[[list[bytes], int, Random], Iterable[frozenset[bytes]]]]
] = {"equal": equal, "two": two, "each its own": each, "skewed": skewed}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="cases with this in their name")
    parser.add_argument("--collect", action="store_true", help="let the cycle collector run")
    arguments = parser.parse_args()
    if not arguments.collect:
        gc.disable()
        return measure(arguments.only)
    with GarbagePolicy() as garbage:
        garbage.keep_all()
        return measure(arguments.only)


def measure(only: str) -> int:
    is_met = True
    print("members x topics x partitions, subscriptions, assignor: first, after a leave, repeated")
    for shape, target_ms in _SHAPES.items():
        for kind in _SUBSCRIPTIONS:
            for name in ASSIGNORS:
                case = f"{shape[0]} x {shape[1]} x {shape[2]}, {kind}, {name}"
                if only in case:
                    costs = costs_of(ASSIGNORS[name], shape, kind)
                    limit_ms = _NO_TARGET_MS if case.startswith(_LARGEST) else target_ms
                    late = [c for c in costs if c.total_ms > limit_ms or c.step_ms > _STEP_MS]
                    is_met = is_met and not late
                    line = ", ".join(map(str, costs))
                    print(f"{case}: {line}{' MISSED' if late else ''}", flush=True)
    return 0 if is_met else 1


def costs_of(assign: Assignor, shape: tuple[int, int, int], kind: str) -> list[Cost]:
    member_count, topic_count, partition_count = shape
    random = Random(1)
    topic_ids = [random.randbytes(16) for _ in range(topic_count)]
    counts = dict.fromkeys(topic_ids, partition_count)
    subscriptions = list(_SUBSCRIPTIONS[kind](topic_ids, member_count, random))
    members = [
        SubscribedMember(f"member-{number:05}", None, subscription, {})
        for number in range(member_count)
        for subscription in [subscriptions[number % len(subscriptions)]]
    ]
    first, assignment = least(lambda: assign(members, counts))
    members = [member._replace(target=assignment[member.member_id]) for member in members]
    leave, assignment = least(lambda: assign(members[:-1], counts))
    members = [member._replace(target=assignment[member.member_id]) for member in members[:-1]]
    repeated, _ = least(lambda: assign(members, counts))
    return [first, leave, repeated]


def least(begin: Callable[[], Steps[ResultT]]) -> tuple[Cost, ResultT]:
    """Run steps three times; return the least cost, and the last result."""
    # Only the last result is kept: its memory would slow down the next run.
    costs = [cost_of(begin())[0] for _ in range(_REPETITIONS - 1)]
    cost, result = cost_of(begin())
    costs.append(cost)
    return Cost(min(c.total_ms for c in costs), min(c.step_ms for c in costs)), result


def cost_of(steps: Steps[ResultT]) -> tuple[Cost, ResultT]:
    """Return the total CPU time of steps, the time of the longest step, and their result."""
    total = longest = 0.0
    while True:
        before = time.process_time()
        try:
            next(steps)
        except StopIteration as end:
            took = time.process_time() - before
            return Cost((total + took) * 1000, max(longest, took) * 1000), end.value
        took = time.process_time() - before
        total += took
        longest = max(longest, took)


if __name__ == "__main__":
    sys.exit(main())
