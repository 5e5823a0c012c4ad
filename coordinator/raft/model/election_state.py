"""What a replica must remember of elections, and its file `quorum-state`.

    {"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1}],"data_version":0}              static voters
    {"leaderId":1,"leaderEpoch":4,"votedId":-1,
     "votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}  kraft.version 1

The file is on disk before any message that depends on it is sent, so no replica votes twice in an
epoch.

Source: Kafka's ElectionState and FileQuorumStateStore (KIP-595, KIP-853).
"""

from __future__ import annotations

import json
from typing import Any, NamedTuple

from wirebroker.codecs.json_text import MAX_INT32, json_integer, parse_json
from wirebroker.codecs.primitives import ZERO_UUID, uuid_from_text, uuid_text
from wirebroker.coordinator.raft.model.replica_key import ReplicaKey

_NONE = -1


class ElectionState(NamedTuple):
    """The newest epoch, its leader, and the vote in it.

    `voters` are the ids that the file of data version 0 lists for readers; they decide nothing.
    """

    epoch: int = 0
    leader_id: int | None = None
    voted: ReplicaKey | None = None
    voters: tuple[int, ...] = ()

    def may_become(self, later: ElectionState) -> bool:
        """Return whether a replica may change its memory like this.

        Epochs increase. Within an epoch the leader never changes, nor does a vote, except that a
        leader forgets that it voted for itself.
        """
        if later.epoch != self.epoch:
            return later.epoch > self.epoch
        if self.leader_id not in (None, later.leader_id):
            return False
        if later.voted is None and self.voted is not None:
            return later.leader_id == self.voted.replica_id
        # The file of data version 0 does not store the directory.
        return self.voted is None or (later.voted is not None and self.voted.matches(later.voted))


def encode_election_state(state: ElectionState, data_version: int) -> bytes:
    """Return the contents of `quorum-state`; `data_version` is the level of kraft.version."""
    content: dict[str, Any] = {
        "leaderId": _NONE if state.leader_id is None else state.leader_id,
        "leaderEpoch": state.epoch,
        "votedId": _NONE if state.voted is None else state.voted.replica_id,
    }
    if data_version == 0:
        content = {
            "clusterId": "",
            **content,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": voter_id} for voter_id in state.voters],
        }
    else:
        directory_id = ZERO_UUID if state.voted is None else state.voted.directory_id
        content["votedDirectoryId"] = uuid_text(directory_id)
    content["data_version"] = data_version
    return json.dumps(content, separators=(",", ":")).encode()


def decode_election_state(content: bytes) -> ElectionState:
    """Read `quorum-state`.

    Raises:
        ValueError: The file is damaged, or of a later data version.
    """
    try:
        fields: dict[str, Any] = parse_json(content)
        data_version = json_integer(fields["data_version"], 0, 1)
        leader_id = json_integer(fields["leaderId"], _NONE, MAX_INT32)
        voted_id = json_integer(fields["votedId"], _NONE, MAX_INT32)
        directory_id = ZERO_UUID
        if data_version >= 1:
            directory_id = uuid_from_text(fields["votedDirectoryId"])
        voters = [voter["voterId"] for voter in fields.get("currentVoters") or ()]
        return ElectionState(
            json_integer(fields["leaderEpoch"], 0, MAX_INT32),
            None if leader_id == _NONE else leader_id,
            None if voted_id == _NONE else ReplicaKey(voted_id, directory_id),
            tuple(json_integer(voter_id, 0, MAX_INT32) for voter_id in voters),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it has no usable field {error}") from None
