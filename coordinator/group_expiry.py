"""Offsets and groups that nobody needs any more (KIP-211).

    group                          an offset expires ... after
    Empty, had members             ... the group became Empty
    no members ever (simple)       ... the commit
    Stable consumers               ... the commit, if no member reads the topic
    any other                      never

... by offsets.retention.minutes, unless the commit said when itself (Kafka before 2.1). A group
that is Empty and has no offsets left goes as well. The offsets of a deleted topic go at once.

Sweeps yield an outcome after each step, so that whoever runs them can serve others in between.

Source: Kafka's OffsetMetadataManager.cleanupExpiredOffsets, GroupCoordinatorShard.
"""

from __future__ import annotations

from itertools import batched
from typing import TYPE_CHECKING

from wirebroker.codecs.coordinator_records import (
    NO_EXPIRY,
    CommittedOffset,
    CoordinatorRecord,
    decode_committed_offset,
    group_prefix,
    group_tombstone,
    read_partition_suffix,
)
from wirebroker.codecs.primitives import ZERO_UUID
from wirebroker.coordinator.classic_group import NO_TIMESTAMP, ClassicGroup, GroupState
from wirebroker.coordinator.group_rebalance import cancel_group_timers
from wirebroker.coordinator.runtime import Outcome
