"""The verification that the coordinator knows a transaction that begins here (KIP-890).

A transaction unknown to the coordinator would never end, and would hide all later records. So its
first batch needs a guard, created before the request to the coordinator. A marker or a first batch
in between removes the guard, so that a late response about an older transaction cannot begin a new
one. Retries share the guard; their lowest sequence must be written first.

Source: KIP-890; Kafka's VerificationGuard, VerificationStateEntry, UnifiedLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.storage.log.producers.producer_entry import out_of_order

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.producers.producer_entry import ProducerEntry


class VerificationGuard:
    """One producer's pending verification, compared by identity."""

    __slots__ = ("lowest_sequence", "producer_epoch", "supports_epoch_bump", "timestamp_ms")

    def __init__(
        self, *, sequence: int, producer_epoch: int, supports_epoch_bump: bool, timestamp_ms: int
    ) -> None:
        self.lowest_sequence = sequence
        self.producer_epoch = producer_epoch
        # From transaction.version 2 on.
        self.supports_epoch_bump = supports_epoch_bump
        self.timestamp_ms = timestamp_ms

    def note(self, sequence: int, producer_epoch: int) -> None:
        """Add another waiting batch."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = sequence
        elif producer_epoch == self.producer_epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


class Verifications:
    """The pending verifications of one partition.

    Attributes:
        guards: By producer id. Always the same dict, so that appends can check cheaply that it is
            empty.
    """

    __slots__ = ("guards",)

    def __init__(self) -> None:
        self.guards: dict[int, VerificationGuard] = {}

    def begin(
        self,
        producer_id: int,
        *,
        sequence: int,
        producer_epoch: int,
        supports_epoch_bump: bool,
        now_ms: int,
    ) -> VerificationGuard:
        """Return the guard for a batch that begins a transaction."""
        guard = self.guards.get(producer_id)
        if guard is None:
            guard = self.guards[producer_id] = VerificationGuard(
                sequence=sequence,
                producer_epoch=producer_epoch,
                supports_epoch_bump=supports_epoch_bump,
                timestamp_ms=now_ms,
            )
        else:
            guard.note(sequence, producer_epoch)
        return guard

    def check_guard(self, producer_id: int, guard: VerificationGuard | None) -> None:
        """Check that the guard is the producer's current one.

        Raises:
            KafkaError: INVALID_TXN_STATE.
        """
        if guard is None or self.guards.get(producer_id) is not guard:
            raise KafkaError(
                ErrorCode.INVALID_TXN_STATE,
                f"Producer {producer_id} has no transaction with this partition",
            )

    def check_lowest_sequence(self, header: BatchHeader, entry: ProducerEntry | None) -> None:
        """Refuse to overtake batches that wait for the coordinator.

        Raises:
            KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        guard = self.guards.get(header.producer_id)
        if guard is None:
            return
        if guard.supports_epoch_bump and header.base_sequence and not (entry and entry.batches):
            raise out_of_order(header, "the producer is unknown, so 0 is expected")
        if header.base_sequence > guard.lowest_sequence:
            raise out_of_order(header, f"{guard.lowest_sequence} was seen before")

    def end_by_batch(self, producer_id: int) -> None:
        """Remove the guard after the transaction's first batch."""
        self.guards.pop(producer_id, None)

    def end_by_marker(self, header: BatchHeader) -> None:
        """Remove the guard, unless the marker ends the previous transaction (same epoch)."""
        guard = self.guards.get(header.producer_id)
        if guard and not (
            guard.supports_epoch_bump and guard.producer_epoch == header.producer_epoch
        ):
            del self.guards[header.producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Remove guards older than `expiration_ms`."""
        for producer_id, guard in list(self.guards.items()):
            if now_ms - guard.timestamp_ms >= expiration_ms:
                del self.guards[producer_id]
