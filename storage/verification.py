"""Whether the transaction coordinator knows of the transactions that are begun here (KIP-890).

A transaction that the coordinator doesn't know would never end, and hide all that follows. So the
first batch of one needs a guard: it is given out before the coordinator is asked, and counts only
while it is the producer's present one. A marker or a first batch that comes in between takes it
away, so that a late "yes" for an older transaction opens no new one. Retries share the guard, and
it remembers the lowest sequence among them, which must be written first.

Source: KIP-890; Kafka's VerificationGuard, VerificationStateEntry, UnifiedLog.
"""

from __future__ import annotations


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
