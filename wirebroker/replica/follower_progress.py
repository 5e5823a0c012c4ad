"""How far one follower has come, as its leader knows from its fetches.

A follower that asks for offset N has everything below N. It was caught up when it asked for the
log's end; or when it asked for what was the end at its fetch before: then it had caught up by that
fetch's time, however quickly the log grows (else a steady producer would keep every follower out).

Source: Kafka's Replica and ReplicaState.
"""

from __future__ import annotations

from typing import Final

UNKNOWN_OFFSET: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1
# Before every time: a follower that never was caught up. Times may be anything from 0 on.
_NEVER: Final = -(1 << 62)


class FollowerProgress:
    """One follower of a partition that is led here. Times are monotonic milliseconds.

    Attributes:
        log_end_offset: What it asked for last; UNKNOWN_OFFSET before it asked in this epoch.
        log_start_offset: Where its log begins, as it said.
        broker_epoch: Of its incarnation, as it said.
        caught_up_ms: When it last had all that there was.
    """

    __slots__ = (
        "_fetched_end_offset",
        "_fetched_ms",
        "broker_epoch",
        "caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    # log_end_offset >= UNKNOWN_OFFSET; caught_up_ms never falls within an epoch.

    def __init__(self, *, is_in_sync: bool, now_ms: int) -> None:
        """Begin an epoch: who is in the ISR is believed to be caught up now."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.caught_up_ms = now_ms if is_in_sync else _NEVER
        # The leader's end when the follower asked last, and when that was.
        self._fetched_end_offset = UNKNOWN_OFFSET
        self._fetched_ms = _NEVER

    def fetched(
        self,
        fetch_offset: int,
        *,
        log_start_offset: int,
        leader_end_offset: int,
        now_ms: int,
        broker_epoch: int,
    ) -> None:
        """Note a fetch.

        Args:
            fetch_offset: What it asks for.
            log_start_offset: Where its log begins.
            leader_end_offset: Where the leader's log ends now.
            now_ms: When it asked.
            broker_epoch: Of its incarnation; UNKNOWN_BROKER_EPOCH if it doesn't say.
        """
        assert 0 <= fetch_offset <= leader_end_offset, (fetch_offset, leader_end_offset)
        if fetch_offset >= leader_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, now_ms)
        elif fetch_offset >= self._fetched_end_offset:
            self.caught_up_ms = max(self.caught_up_ms, self._fetched_ms)
        self.log_end_offset = fetch_offset
        self.log_start_offset = log_start_offset
        self.broker_epoch = broker_epoch
        self._fetched_end_offset = leader_end_offset
        self._fetched_ms = now_ms

    def is_caught_up(self, leader_end_offset: int, *, now_ms: int, most_lag_ms: int) -> bool:
        """Tell whether it has all, or had all that there was not long ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= most_lag_ms
