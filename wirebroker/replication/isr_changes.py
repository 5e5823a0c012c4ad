"""ISR changes that the leaders of this node request from the controller (AlterPartition).

    response               effect on the change
    an ISR                 applied, unless newer metadata arrived first
    refused                dropped; the next Fetch or check requests it again
    overtaken              stays pending until the newer metadata arrives
    none, or other error   retried, because it may have been made

Source: Kafka's DefaultAlterPartitionManager, Partition.handleAlterPartitionError; KIP-497, KIP-903.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.net.client.settings import Backoff
from wirebroker.quorum.channel.controller_channel import check_answer
from wirebroker.quorum.channel.controller_sender import ControllerSender

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.quorum.channel.broker_lifecycle import BrokerLifecycle
    from wirebroker.quorum.channel.controller_channel import ControllerChannel
    from wirebroker.replica.leader_role import IsrChange
    from wirebroker.replica.partition import Partition

logger = logging.getLogger(__name__)

# Kafka retries every 50 ms. Here a follower may leave the ISR up to a second late.
_BACKOFF: Final = Backoff(first_s=0.05, most_s=1.0)
# From this version on requests have members' broker epochs.
_FIRST_WITH_EPOCHS: Final = 3
# Partitions in one request, about 100 bytes each.
_MOST_AT_ONCE: Final = 5_000

_REFUSED: Final = frozenset({ErrorCode.OPERATION_NOT_ATTEMPTED, ErrorCode.INELIGIBLE_REPLICA})
_OVERTAKEN: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.INVALID_UPDATE_VERSION,
        ErrorCode.INVALID_REQUEST,
        ErrorCode.NEW_LEADER_ELECTED,
    }
)


_Batch: TypeAlias = "dict[tuple[bytes, int], tuple[Partition, IsrChange]]"


class IsrChanges(ControllerSender["_Batch"]):
    """The pending ISR changes."""

    __slots__ = ("_channel", "_clock", "_lifecycle", "_waiting")

    def __init__(
        self, channel: ControllerChannel, lifecycle: BrokerLifecycle, *, clock: Clock
    ) -> None:
        super().__init__("AlterPartition", backoff=_BACKOFF, seed=lifecycle.node_id)
        self._channel = channel
        self._lifecycle = lifecycle
        self._clock = clock
        self._waiting: dict[Partition, IsrChange] = {}

    def add(self, partition: Partition, replica: int) -> None:
        """Request that a follower joins the ISR."""
        leading = partition.leading
        assert leading is not None
        self._ask(partition, {*leading.isr, replica})

    async def remove_lagging(self, partitions: Iterable[Partition]) -> None:
        """Request that lagging followers leave the ISRs."""
        slices = Slices(self._clock, Slices.BESIDE_OTHERS_SECONDS)
        for partition in partitions:
            lagging = partition.lagging_followers()
            leading = partition.leading
            if lagging and leading is not None:
                logger.info("%s: %s lag behind the leader %d", partition, lagging, leading.leader)
                self._ask(partition, {*leading.isr} - {*lagging})
            await slices.turn()

    def _ask(self, partition: Partition, isr: Collection[int]) -> None:
        self._waiting[partition] = partition.ask_for_isr(isr)
        self._wake()

    def _next_batch(self) -> _Batch:
        batch: _Batch = {}
        while self._waiting and len(batch) < _MOST_AT_ONCE:
            partition = next(iter(self._waiting))
            change = self._waiting.pop(partition)
            leading = partition.leading
            if leading is not None and leading.change is change:
                batch[partition.topic_id, partition.index] = partition, change
        return batch

    def _on_sent(self, batch: _Batch, *, was_answered: bool) -> None:
        if not was_answered:
            self._put_back(batch)

    def _put_back(self, batch: _Batch) -> None:
        for partition, change in batch.values():
            self._waiting.setdefault(partition, change)

    async def _send(self, batch: _Batch) -> int:
        answer = check_answer(
            await self._channel.ask(
                ApiKey.ALTER_PARTITION, lambda version: self._body(batch, version)
            )
        )
        undecided = dict(batch)
        slices = Slices(self._clock)
        for topic in answer.topics:
            for result in topic.partitions:
                key = (topic.topic_id, result.partition_index)
                if key in undecided and _take(*undecided[key], result):
                    del undecided[key]
                await slices.turn()
        self._put_back(undecided)
        return len(undecided)

    def _body(self, batch: _Batch, version: int) -> Mapping[str, Any]:
        lifecycle = self._lifecycle
        topics: dict[bytes, list[dict[str, Any]]] = {}
        for (topic_id, index), (_, change) in batch.items():
            if version < _FIRST_WITH_EPOCHS:
                isr: dict[str, Any] = {"new_isr": list(change.isr)}
            else:
                own = lifecycle.node_id, lifecycle.broker_epoch
                isr = {"new_isr_with_epochs": _with_epochs(change, own)}
            topics.setdefault(topic_id, []).append(
                {
                    "partition_index": index,
                    "leader_epoch": change.leader_epoch,
                    **isr,
                    "partition_epoch": change.partition_epoch,
                }
            )
        return {
            "broker_id": lifecycle.node_id,
            "broker_epoch": lifecycle.broker_epoch,
            "topics": [
                {"topic_id": topic_id, "partitions": partitions}
                for topic_id, partitions in topics.items()
            ],
        }


def _with_epochs(change: IsrChange, own: tuple[int, int]) -> list[dict[str, int]]:
    """Return the members with the broker epochs that had caught up (KIP-903); -1 is not compared.

    Retries keep them: a follower that restarts meanwhile may have lost records.
    """
    epochs = {**change.broker_epochs, own[0]: own[1]}
    return [
        {"broker_id": broker_id, "broker_epoch": epochs.get(broker_id, -1)}
        for broker_id in change.isr
    ]


def _take(partition: Partition, change: IsrChange, result: Any) -> bool:
    """Apply the result for one change; return whether it is final."""
    error = result.error_code
    leading = partition.leading
    if error in _REFUSED:
        logger.info("%s: the controller refuses the ISR %s", partition, change.isr)
        partition.isr_refused(change)
    elif error and error not in _OVERTAKEN:
        return False
    elif (
        not error
        and leading is not None
        and leading.change is change
        and result.leader_epoch == change.leader_epoch
    ):
        logger.debug("%s: the ISR is now %s", partition, result.isr)
        partition.isr_accepted(result.isr, partition_epoch=result.partition_epoch)
    return True
