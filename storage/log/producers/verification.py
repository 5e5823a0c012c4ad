"""Whether the transaction coordinator knows of the transactions that are begun here (KIP-890).

A transaction that the coordinator doesn't know would never end, and hide all that follows. So the
first batch of one needs a guard: it is given out before the coordinator is asked, and counts only
while it is the producer's present one. A marker or a first batch that comes in between takes it
away, so that a late "yes" for an older transaction opens no new one. Retries share the guard, and
it remembers the lowest sequence among them, which must be written first.

Source: KIP-890; Kafka's VerificationGuard, VerificationStateEntry, UnifiedLog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.storage.log.producers.producer_entry import out_of_order

if TYPE_CHECKING:
    from wirebroker.codecs.records.batch import BatchHeader
    from wirebroker.storage.log.producers.producer_entry import ProducerEntry


class VerificationGuard:
    """One producer's verification under way; compared by identity."""

    __slots__ = ("lowest_sequence", "producer_epoch", "supports_epoch_bump", "timestamp_ms")

    def __init__(
        self, *, sequence: int, producer_epoch: int, supports_epoch_bump: bool, timestamp_ms: int
    ) -> None:
        self.lowest_sequence = sequence
        self.producer_epoch = producer_epoch
        # The producer's epoch rises with each transaction (transaction.version 2).
        self.supports_epoch_bump = supports_epoch_bump
        self.timestamp_ms = timestamp_ms

    def note(self, sequence: int, producer_epoch: int) -> None:
        """Take in another batch that waits for the same answer."""
        if producer_epoch > self.producer_epoch:
            self.producer_epoch = producer_epoch
            self.lowest_sequence = sequence
        elif producer_epoch == self.producer_epoch and sequence < self.lowest_sequence:
            self.lowest_sequence = sequence


class Verifications:
    """The verifications under way in one partition.

    Attributes:
        guards: By producer id, until the first batch is written or a marker comes. Always the same
            dict: most partitions have none at nearly all times, and who appends looks for that
            first.
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
        """Give out the guard for a batch that begins a transaction; see VerificationGuard."""
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

    def is_present(self, producer_id: int, guard: VerificationGuard | None) -> bool:
        """Tell whether a guard is the producer's present one."""
        return guard is not None and self.guards.get(producer_id) is guard

    def check_lowest_sequence(self, header: BatchHeader, entry: ProducerEntry | None) -> None:
        """Let the batches that wait for the coordinator go first, in their order.

        Raises:
            KafkaError: OUT_OF_ORDER_SEQUENCE_NUMBER.
        """
        guard = self.guards.get(header.producer_id)
        if guard is None:
            return
        if guard.supports_epoch_bump and header.base_sequence and not (entry and entry.batches):
            raise out_of_order(header, "nothing is known of it, so it begins at 0")
        if header.base_sequence > guard.lowest_sequence:
            raise out_of_order(header, f"{guard.lowest_sequence} was seen before")

    def end_by_batch(self, producer_id: int) -> None:
        """Note that a batch of the transaction was written."""
        self.guards.pop(producer_id, None)

    def end_by_marker(self, header: BatchHeader) -> None:
        """Note that a marker has come: it ends the transaction, or the one before."""
        guard = self.guards.get(header.producer_id)
        # A marker that has the guard's own epoch has ended the transaction before the guard's.
        if guard and not (
            guard.supports_epoch_bump and guard.producer_epoch == header.producer_epoch
        ):
            del self.guards[header.producer_id]

    def remove_expired(self, now_ms: int, expiration_ms: int) -> None:
        """Forget those that were begun `expiration_ms` ago."""
        for producer_id, guard in list(self.guards.items()):
            if now_ms - guard.timestamp_ms >= expiration_ms:
                del self.guards[producer_id]
