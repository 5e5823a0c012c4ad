"""The file quorum-state, byte by byte as Kafka writes it."""

from __future__ import annotations

import pytest

from tests.support.coordinators.raft_kit import key
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.raft.model.election_state import (
    ElectionState,
    decode_election_state,
    encode_election_state,
)
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey

FILES = [
    (
        ElectionState(1, 1, None, (1,)),
        0,
        b'{"clusterId":"","leaderId":1,"leaderEpoch":1,"votedId":-1,"appliedOffset":0,'
        b'"currentVoters":[{"voterId":1}],"data_version":0}',
    ),
    (
        ElectionState(1, 101),
        1,
        b'{"leaderId":101,"leaderEpoch":1,"votedId":-1,'
        b'"votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}',
    ),
    (
        ElectionState(7, None, key(3)),
        1,
        b'{"leaderId":-1,"leaderEpoch":7,"votedId":3,'
        b'"votedDirectoryId":"AwMDAwMDAwMDAwMDAwMDAw","data_version":1}',
    ),
]


@pytest.mark.parametrize(("state", "version", "content"), FILES)
def test_file_is_kafkas(state, version, content):
    assert encode_election_state(state, version) == content
    assert decode_election_state(content) == state


def test_static_file_has_no_directory_of_the_vote():
    content = encode_election_state(ElectionState(7, None, key(3), (1, 2, 3)), 0)
    assert decode_election_state(content).voted == ReplicaKey(3, ZERO_UUID)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"[]",
        b"{}",
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":2}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"data_version":1}',
        b'{"leaderId":1,"leaderEpoch":-1,"votedId":-1,"data_version":0}',
        b'{"leaderId":"x","leaderEpoch":1,"votedId":-1,"data_version":0}',
        b'{"leaderId":1,"leaderEpoch":1,"votedId":-1,"votedDirectoryId":"x","data_version":1}',
    ],
)
def test_damaged_file_is_refused(content):
    with pytest.raises(ValueError):  # noqa: PT011
        decode_election_state(content)


@pytest.mark.parametrize(
    ("before", "after", "may"),
    [
        (ElectionState(4), ElectionState(5), True),
        (ElectionState(5), ElectionState(4), False),
        (ElectionState(5), ElectionState(5, None, key(1)), True),
        (ElectionState(5, None, key(1)), ElectionState(5, None, key(2)), False),
        (ElectionState(5, None, key(1)), ElectionState(5), False),
        (ElectionState(5, None, key(1)), ElectionState(5, 1), True),
        (ElectionState(5, None, key(1)), ElectionState(5, 2), False),
        (ElectionState(5, None, key(1)), ElectionState(5, 2, key(1)), True),
        (ElectionState(5, 1), ElectionState(5, 2), False),
        (ElectionState(5, 1), ElectionState(5), False),
        (ElectionState(5, 1), ElectionState(6), True),
    ],
)
def test_what_may_be_remembered_after_what(before, after, may):
    assert before.may_become(after) == may
