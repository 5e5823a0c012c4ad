"""The file `quorum-state`, which stores the epoch that this controller last led.

    {"clusterId":"","leaderId":1,"leaderEpoch":4,"votedId":-1,"appliedOffset":0,
     "currentVoters":[{"voterId":1}],"data_version":0}              static voters
    {"leaderId":1,"leaderEpoch":4,"votedId":-1,
     "votedDirectoryId":"AAAAAAAAAAAAAAAAAAAAAA","data_version":1}  kraft.version 1

Source: KIP-595, KIP-853; Kafka's FileQuorumStateStore.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.codecs.json_text import MAX_INT32, json_integer, parse_json
from wirebroker.codecs.primitives import ZERO_UUID, uuid_text
from wirebroker.config.rows.row import StartError

if TYPE_CHECKING:
    from wirebroker.storage.files import Files

FILE_NAME = "quorum-state"


class QuorumState(NamedTuple):
    """The stored state of a quorum whose only voter is this node."""

    leader_epoch: int = 0
    # 1 if the log contains the voters (kraft.version 1); never changed.
    data_version: int = 0


def read_quorum_state(files: Files, directory: str, *, node_id: int) -> QuorumState:
    """Read the file; a missing one means epoch 0.

    Raises:
        StartError: The file is unreadable, or the quorum has other voters.
    """
    path = f"{directory}/{FILE_NAME}"
    if not files.exists(path):
        return QuorumState()
    try:
        content: dict[str, Any] = parse_json(files.read_file(path))
        state = QuorumState(
            json_integer(content["leaderEpoch"], 0, MAX_INT32),
            json_integer(content["data_version"], 0, 1),
        )
        voters = {int(voter["voterId"]) for voter in content.get("currentVoters") or ()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise StartError(f"{path} cannot be read ({error!r})", "restore it from a backup") from None
    if voters - {node_id}:
        raise StartError(
            f"{directory} belongs to a quorum with the voters {sorted(voters)}",
            f"choose a directory whose only voter is node {node_id}",
        )
    return state


def write_quorum_state(files: Files, directory: str, state: QuorumState, *, node_id: int) -> None:
    """Replace the file and sync it."""
    content: dict[str, Any] = {
        "leaderId": node_id,
        "leaderEpoch": state.leader_epoch,
        "votedId": -1,
    }
    if state.data_version == 0:
        content = {
            "clusterId": "",
            **content,
            "appliedOffset": 0,
            "currentVoters": [{"voterId": node_id}],
        }
    else:
        content["votedDirectoryId"] = uuid_text(ZERO_UUID)
    content["data_version"] = state.data_version
    text = json.dumps(content, separators=(",", ":"))
    files.write_file(f"{directory}/{FILE_NAME}", text.encode())
