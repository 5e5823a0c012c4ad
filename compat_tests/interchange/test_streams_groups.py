"""Streams groups (KIP-1071) that both brokers serve in turns, in the middle of a rebalance."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from compat_tests.clients.message import WAIT_S
from compat_tests.interchange.contents import contents_of, types_of_groups
from compat_tests.interchange.shared_folder import SharedFolder, address
from compat_tests.support.raw_requests import Requests
from tests.support.tools.waiting import eventually
from tests.transcripts.topologies import internal, subtopology, tasks, topology
from wirebroker.codecs.api_keys import ApiKey

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compat_tests.interchange.shared_folder import End

pytestmark = pytest.mark.java

JOINING, LEAVING, LEAVING_FOR_A_WHILE = 0, -1, -2
TIMEOUT_MS = 300_000
# Assignments are computed at once.
SETTINGS = {
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}
CHANGELOG = "app-counts-changelog"
TOPOLOGY = topology(
    subtopology("0", "t", changelogs=[internal(CHANGELOG, cleanup_policy="compact")])
)


@contextlib.contextmanager
def serving(folder: SharedFolder, kind: str, end: End) -> Iterator[Requests]:
    with (
        folder.run(kind, end) as broker,
        contextlib.closing(Requests(address(broker))) as requests,
    ):
        yield requests


def beat(requests: Requests, member_id: str, epoch: int, **fields: Any) -> Any:
    """Send a heartbeat to the group `app`; return the response, which has no error."""
    request = {
        "group_id": "app",
        "member_id": member_id,
        "member_epoch": epoch,
        "endpoint_information_epoch": -1,
        **fields,
    }
    if epoch == JOINING:
        request |= {
            "rebalance_timeout_ms": TIMEOUT_MS,
            "topology": TOPOLOGY,
            "process_id": member_id,
            "client_tags": [],
            **owned(),
        }
    return requests.ask_until_served(ApiKey.STREAMS_GROUP_HEARTBEAT, 1, request)


def owned(*partitions: int) -> dict[str, Any]:
    """Return the fields of a heartbeat that report these active tasks."""
    active = [tasks("0", *partitions)] if partitions else []
    return {"active_tasks": active, "standby_tasks": [], "warmup_tasks": []}


def tasks_of(assigned: Any) -> list[int]:
    """Return the partitions of the active tasks of a response or of a described assignment."""
    return sorted(index for task in assigned.active_tasks or () for index in task.partitions)


def described(requests: Requests) -> dict[str, Any]:
    """Return the state of the group, with its members by id.

    Its state as a word depends on the topics, which are looked up in the first heartbeat.
    """
    answer = requests.ask_until_served(ApiKey.STREAMS_GROUP_DESCRIBE, 1, {"group_ids": ["app"]})
    (group,) = answer.groups
    return {
        "epochs": (group.group_epoch, group.assignment_epoch),
        "topology": [
            (part.subtopology_id, part.source_topics, part.state_changelog_topics[0].name)
            for part in group.topology.subtopologies
        ],
        **{
            member.member_id: (
                member.instance_id,
                member.member_epoch,
                member.topology_epoch,
                member.process_id,
                tasks_of(member.assignment),
                tasks_of(member.target_assignment),
            )
            for member in group.members
        },
    }


def commit(requests: Requests, member_id: str, epoch: int, partition: int, offset: int) -> None:
    partitions = [{"partition_index": partition, "committed_offset": offset}]
    request = {
        "group_id": "app",
        "generation_id_or_member_epoch": epoch,
        "member_id": member_id,
        "topics": [{"name": "t", "partitions": partitions}],
    }
    requests.ask_until_served(ApiKey.OFFSET_COMMIT, 9, request)


def beat_until_assigned(requests: Requests, member_id: str, epoch: int) -> Any:
    """Send heartbeats until the group has noticed its internal topics."""
    responses = [beat(requests, member_id, epoch)]

    def has_tasks() -> bool:
        if not tasks_of(responses[-1]):
            responses.append(beat(requests, member_id, responses[-1].member_epoch))
        return bool(tasks_of(responses[-1]))

    eventually(has_tasks, timeout_s=WAIT_S, poll_s=0.1)
    return responses[-1]


@pytest.mark.parametrize(
    ("maker", "end"),
    [
        ("wirebroker", "stop"),
        pytest.param("apache", "kill", marks=pytest.mark.nightly),
        pytest.param("apache", "stop", marks=pytest.mark.nightly),
        pytest.param("wirebroker", "kill", marks=pytest.mark.nightly),
    ],
)
def test_members_continue_with_other_broker(tmp_path: Path, maker: str, end: End) -> None:
    other = "wirebroker" if maker == "apache" else "apache"
    folder = SharedFolder(tmp_path, settings=SETTINGS)
    with serving(folder, maker, end) as requests:
        requests.create("t", 4)
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        joined = beat(requests, "a", JOINING)
        # The broker creates the internal topic after the response.
        got = beat_until_assigned(requests, "a", joined.member_epoch)
        assert tasks_of(got) == [0, 1, 2, 3]
        commit(requests, "a", got.member_epoch, 3, 7)
        second = beat(requests, "b", JOINING, instance_id="i")
        assert tasks_of(second) == []
        kept = beat(requests, "a", got.member_epoch, **owned(0, 1, 2, 3))
        first_half = tasks_of(kept)
        assert len(first_half) == 2
        before, offsets = described(requests), contents_of(requests).offsets
    with serving(folder, other, end) as requests:
        assert types_of_groups(requests) == {"app": "streams"}
        assert contents_of(requests).offsets == offsets
        assert described(requests) == before
        # The first member gives up two tasks, the second gets them.
        moved_on = beat(requests, "a", kept.member_epoch, **owned(*first_half))
        taken = beat(requests, "b", second.member_epoch, instance_id="i", **owned())
        assert sorted([*tasks_of(taken), *first_half]) == [0, 1, 2, 3]
        commit(requests, "b", taken.member_epoch, tasks_of(taken)[0], 1)
        beat(requests, "b", LEAVING_FOR_A_WHILE, instance_id="i")
        before, offsets = described(requests), contents_of(requests).offsets
    with serving(folder, maker, "stop") as requests:
        assert contents_of(requests).offsets == offsets
        assert described(requests) == before
        returned = beat(requests, "c", JOINING, instance_id="i")
        assert tasks_of(returned) == tasks_of(taken)
        beat(requests, "a", moved_on.member_epoch, **owned(*first_half))
        beat(requests, "a", LEAVING)
        beat(requests, "c", LEAVING, instance_id="i")
        before = described(requests)
        assert before.keys() == {"epochs", "topology"}
    with serving(folder, other, "stop") as requests:
        assert described(requests) == before
        assert contents_of(requests).offsets == offsets
        requests.ask(ApiKey.DELETE_GROUPS, 2, {"groups_names": ["app"]})
        assert types_of_groups(requests) == {}
    with serving(folder, maker, "stop") as requests:
        requests.ask_until_served(ApiKey.FIND_COORDINATOR, 2, {"key": "any", "key_type": 0})
        assert types_of_groups(requests) == {}
