"""The level of kraft.version, as the operations of one term see and raise it (KIP-853)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from wirebroker.quorum.raft.raft_node import RaftNode


class TermLevel:
    """The level in an epoch that this node leads."""

    __slots__ = ("_epoch", "_node")

    def __init__(self, node: RaftNode, epoch: int) -> None:
        self._node = node
        self._epoch = epoch

    @property
    def level(self) -> int:
        """See QuorumLevel."""
        return self._node.kraft_version

    def upgrade(self, level: int, *, is_dry_run: bool) -> None:
        """See QuorumLevel."""
        try:
            self._node.upgrade(self._epoch, level, is_dry_run=is_dry_run)
        except KafkaError as error:
            if error.code is ErrorCode.NOT_LEADER_OR_FOLLOWER:
                raise KafkaError(ErrorCode.NOT_CONTROLLER, error.message) from error
            raise
