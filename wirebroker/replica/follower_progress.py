"""The progress of one follower, as its leader knows it from Fetch requests.

A follower that fetches from the log's end is caught up. If it fetches from what was the end at its
previous fetch, it was caught up then; otherwise a steady producer would keep every follower out.

Source: Kafka's Replica and ReplicaState.
"""

from __future__ import annotations

from typing import Final

UNKNOWN_OFFSET: Final = -1
UNKNOWN_BROKER_EPOCH: Final = -1
# Before any time, for a follower that has never caught up.
_NEVER: Final = -(1 << 62)


class FollowerProgress:
    """One follower of a partition that this node leads. Times are monotonic milliseconds.

    Attributes:
        log_end_offset: Its last fetch offset; UNKNOWN_OFFSET before its first fetch in this epoch.
        log_start_offset: As it reported.
        broker_epoch: As it reported.
        caught_up_ms: When it last had all records; never falls within a leader epoch.
    """

    __slots__ = (
        "_fetched_end_offset",
        "_fetched_ms",
        "broker_epoch",
        "caught_up_ms",
        "log_end_offset",
        "log_start_offset",
    )

    def __init__(self, *, is_in_sync: bool, now_ms: int) -> None:
        """Begin a leader epoch; members of the ISR count as caught up now."""
        self.log_end_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.broker_epoch = UNKNOWN_BROKER_EPOCH
        self.caught_up_ms = now_ms if is_in_sync else _NEVER
        # The leader's log end offset and the time at the last fetch.
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
        """Record a fetch, with the leader's log end offset at that time."""
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
        """Return whether it has all records, or had them at most `most_lag_ms` ago."""
        return self.log_end_offset == leader_end_offset or now_ms - self.caught_up_ms <= most_lag_ms
