"""What holds for each assignor: errors, invalid input, steps, and no influence of hashes."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.coordinators.assignor_kit import (
    check_assignment,
    member,
    topic_id,
    topics,
    with_targets,
)
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.coordinator.groups.assignors.assignor import (
    SubscribedMember,
)
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS

if TYPE_CHECKING:
    from types import FrameType

    from wirebroker.base.clock import Steps

pytestmark = pytest.mark.parametrize("name", ASSIGNORS)

# Some milliseconds of plain Python.
MOST_LINES = 25_000
_PRINTED = """\
from tests.support.coordinators.assignor_kit import assigned, topics
from wirebroker.coordinator.groups.assignors.assignors import ASSIGNORS
for group in (["a [t u v]", "b [t u v] t1", "c [t u v]"], ["a [t u]", "b [u v] u1", "c [t v]"]):
    print(assigned(ASSIGNORS[{name!r}], group, topics(t=5, u=4, v=7)))
"""


@pytest.mark.parametrize("group", [["a [t]", "b [t]"], ["a []", "b [t]"]])
def test_unknown_topic_is_an_error(name, group):
    members = [member(text) for text in group]
    with pytest.raises(KafkaError, match="which does not exist") as caught:
        in_one_go(ASSIGNORS[name](members, topics(u=1)))
    assert caught.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


@pytest.mark.parametrize("others", ["[t]", "[t u]"])
def test_impossible_present_assignment_is_repaired(name, others):
    members = [member("a [t] t0 t1 t9 x0"), member(f"b {others} t1 t2"), member(f"c {others} t1")]
    counts = topics(t=4, u=1)
    assignment = in_one_go(ASSIGNORS[name](members, counts))
    check_assignment(members, counts, assignment)


def test_input_is_not_changed(name):
    members = [member("a [t u] t0 t1 t2"), member("b [t]")]
    before = [(dict(each.target), each.topic_ids) for each in members]
    in_one_go(ASSIGNORS[name](members, topics(t=4, u=1)))
    assert [(dict(each.target), each.topic_ids) for each in members] == before


@pytest.mark.parametrize("shape", [(4_000, 1), (40, 100), (1, 4_000)])
@pytest.mark.parametrize("are_equal", [True, False])
def test_work_is_done_in_short_steps(name, shape, are_equal):
    topic_count, partition_count = shape
    counts = {number.to_bytes(16): partition_count for number in range(1, topic_count + 1)}
    subscription = frozenset(counts)
    members = [
        SubscribedMember(f"m{number:02}", None, subscription, {})
        for number in range(40 - (not are_equal))
    ]
    if not are_equal:
        counts[topic_id("x")] = 7
        members.append(SubscribedMember("x", None, frozenset(counts), {}))
    assignment, lines = largest_step(ASSIGNORS[name](members, counts))
    check_assignment(members, counts, assignment)
    assert lines < MOST_LINES
    # All of one member: the others must receive theirs.
    hoarder, *others = members
    owned = {topic: frozenset(range(counts[topic])) for topic in hoarder.topic_ids}
    members = [hoarder._replace(target=owned), *others]
    assignment, lines = largest_step(ASSIGNORS[name](members, counts))
    check_assignment(members, counts, assignment)
    assert lines < MOST_LINES
    again, lines = largest_step(ASSIGNORS[name](with_targets(members, assignment), counts))
    assert again == assignment
    assert lines < MOST_LINES


def largest_step(steps: Steps[Any]) -> tuple[Any, int]:
    """Return the result of steps, and the lines of Python that the longest step executed."""
    lines = largest = 0

    def trace(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal lines
        lines += event == "line"
        return trace

    while True:
        lines = 0
        before = sys.gettrace()
        sys.settrace(trace)
        try:
            next(steps)
        except StopIteration as end:
            return end.value, max(largest, lines)
        finally:
            sys.settrace(before)
        largest = max(largest, lines)


def test_hash_seed_has_no_influence(name):
    printed = {
        subprocess.run(
            [sys.executable, "-c", _PRINTED.format(name=name)],
            env=os.environ | {"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert printed.pop().count(b"'c': ") == 2
