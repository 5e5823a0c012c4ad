"""Events that are read late do not break the group's checks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import TopicPartition

from compat_tests.groups.group import PARTITIONS, Group, Member

if TYPE_CHECKING:
    from collections.abc import Sequence

ASSIGNED = {"event": "assigned", "partitions": [0]}
CONSUMED = {"event": "record", "partition": 0, "offset": 4}
COMMITTED = {"event": "committed", "partition": 0, "offset": 5}


class LateAnswer:
    """A fake offsets consumer; the member continues before or during its response."""

    def __init__(self, group: Group, events: Sequence[dict[str, Any]], offset: int) -> None:
        self._group, self._events, self._offset = group, events, offset

    def committed(
        self, topic_partitions: list[TopicPartition], timeout: float
    ) -> list[TopicPartition]:
        assert timeout > 0
        for event in self._events:
            line = json.dumps({"member": "a", **event}) + "\n"
            os.write(self._group._writing, line.encode())
        return [
            TopicPartition(topic_partition.topic, topic_partition.partition, self._offset)
            for topic_partition in topic_partitions
        ]

    def close(self) -> None:
        """Do nothing."""


@pytest.fixture
def member(group: Group) -> Member:
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, start_new_session=True
    )
    errors = group.directory / "a.stderr"
    errors.touch()
    group.members["a"] = Member("a", process, errors)
    return group.members["a"]


@pytest.mark.parametrize("offset", [0, 5], ids=["asked before the commit", "asked behind it"])
def test_assignment_is_not_checked_against_later_commits(
    group: Group, member: Member, offset: int
) -> None:
    group._offsets.close()
    group._offsets = LateAnswer(group, [ASSIGNED, CONSUMED, COMMITTED], offset)
    assert group.fetch_committed() == dict.fromkeys(range(PARTITIONS), offset)
    assert member.records == [(0, 4)]
    assert group.committed[0] == 5


def test_consuming_records_committed_earlier_is_detected(group: Group, member: Member) -> None:
    group._offsets.close()
    group._offsets = LateAnswer(group, [], 5)
    group.fetch_committed()
    group._offsets = LateAnswer(group, [ASSIGNED, CONSUMED], 5)
    with pytest.raises(AssertionError, match="5 was committed when it was assigned"):
        group.fetch_committed()
    assert member.floors == {0: 5}
