"""The voters of a quorum: which of them follow its leader, and what to do about the others."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.base.text import counted

if TYPE_CHECKING:
    from wirebroker.client.cluster.quorum import DescribedQuorum, QuorumReplica

# A voter fetches twice a second; after 3 s without a fetch from a majority the leader resigns.
MISSING_MS: Final = 5_000
# What to do if no controller responds.
SILENT_STEP: Final = (
    "start a majority of the controllers, each on its own directory (do not format a new one):"
    " until then nothing can be created or altered, and no partition fails over"
)


class Voters(NamedTuple):
    """The voters as their leader sees them.

    Attributes:
        present: Those that fetch, and the leader.
        missing: Those that do not.
    """

    present: list[QuorumReplica]
    missing: list[QuorumReplica]

    @property
    def total(self) -> int:
        """The number of voters."""
        return len(self.present) + len(self.missing)

    @property
    def majority(self) -> int:
        """How many of them must be present."""
        return self.total // 2 + 1

    @property
    def spare(self) -> int:
        """How many more may fail."""
        return len(self.present) - self.majority

    @property
    def ids(self) -> list[int]:
        """The node ids of all voters."""
        return sorted(voter.node_id for voter in (*self.present, *self.missing))

    @property
    def missing_ids(self) -> list[int]:
        """The node ids of the missing voters."""
        return [voter.node_id for voter in self.missing]


def voters_of(quorum: DescribedQuorum) -> Voters:
    """Return the voters of a quorum with a leader."""
    voters = Voters([], [])
    for replica in quorum.replicas:
        if replica.is_voter:
            is_missing = replica.node_id != quorum.leader_id and is_silent(replica, quorum)
            (voters.missing if is_missing else voters.present).append(replica)
    return voters


def has_dynamic_voters(quorum: DescribedQuorum) -> bool:
    """Return whether voters can be added and removed (kraft.version 1).

    A leader knows its own directory only then.
    """
    return any(
        replica.is_voter and replica.node_id == quorum.leader_id and any(replica.directory_id)
        for replica in quorum.replicas
    )


def is_silent(replica: QuorumReplica, quorum: DescribedQuorum) -> bool:
    """Return whether a replica has not fetched for some time."""
    if quorum.now_ms is None:  # before version 1 of DescribeQuorum
        return False
    return replica.fetched_ms is None or quorum.now_ms - replica.fetched_ms > MISSING_MS


def summary_of(quorum: DescribedQuorum) -> str:
    """Return one line about the voters."""
    voters = voters_of(quorum)
    text = f"{counted(voters.total, 'voter')} ({_listed(voters.ids)})"
    if voters.total == 1:
        return f"{text}: no controller takes over if it fails"
    if voters.missing:
        text += f", {_listed(voters.missing_ids)} missing"
    return f"{text}: {voters.spare} more may fail"


def missing_text(quorum: DescribedQuorum, voter: QuorumReplica) -> str:
    """Return a sentence about a missing voter."""
    place = _place(quorum, voter.node_id)
    if _has_new_directory(quorum, voter):
        return f"controller {voter.node_id}{place} has a new directory, so it does not vote"
    if voter.fetched_ms is None or quorum.now_ms is None:
        return f"controller {voter.node_id}{place} has not fetched from the leader"
    silent_s = (quorum.now_ms - voter.fetched_ms) // 1000
    return f"controller {voter.node_id}{place} has not fetched for {silent_s} s"


def missing_step(quorum: DescribedQuorum, voter: QuorumReplica) -> str:
    """Return what to do about a missing voter."""
    node_id = voter.node_id
    remove = f"wirebroker quorum remove-voter {node_id} --yes"
    if _has_new_directory(quorum, voter):
        added = f"{node_id}@{_address(quorum, node_id)}"
        return (
            f"if the former directory still exists, restart controller {node_id} on it; otherwise"
            f" keep the controller running, run `{remove}`, wait until `wirebroker quorum`"
            f" shows lag 0 for it, and run `wirebroker quorum add-voter {added} --yes`"
            " (with controller.quorum.auto.join.enable=true the controller does both itself)"
        )
    if not has_dynamic_voters(quorum):
        # On a new directory, a static voter votes as if it still had its former log.
        return f"start controller {node_id} on its own directory, or check its log"
    return f"start controller {node_id}, or check its log; if its disk is lost, `{remove}`"


def advice_of(quorum: DescribedQuorum) -> list[str]:
    """Return the next steps for a quorum that could survive more."""
    voters = voters_of(quorum)
    steps = [missing_step(quorum, voter) for voter in voters.missing]
    if not voters.missing and voters.total == 2:
        steps.append("both voters are needed: add a third (`wirebroker quorum add-voter`)")
    return steps


def _has_new_directory(quorum: DescribedQuorum, voter: QuorumReplica) -> bool:
    """Return whether the controller of a missing voter runs, on another directory."""
    return any(
        replica.node_id == voter.node_id and not replica.is_voter and not is_silent(replica, quorum)
        for replica in quorum.replicas
    )


def _address(quorum: DescribedQuorum, node_id: int) -> str:
    endpoints = quorum.endpoints.get(node_id)
    return endpoints[0].partition("://")[2] if endpoints else "HOST:PORT"


def _place(quorum: DescribedQuorum, node_id: int) -> str:
    endpoints = quorum.endpoints.get(node_id)
    return f" at {', '.join(endpoints)}" if endpoints else ""


def _listed(ids: list[int]) -> str:
    return ", ".join(map(str, ids))
