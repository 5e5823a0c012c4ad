"""What passed through a partition since the process began: plain integers, counted where it does.

The log counts what is appended to it; here stands the rest, and what of the former a leader sent.
A deleted partition's numbers go on in its node's sum, so that a counter never falls.

Source: Kafka's BrokerTopicStats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.replica.local_replica import LocalReplica


class Traffic:
    """One partition's.

    Attributes:
        produce_requests: Appends that clients or coordinators asked for.
        fetch_requests: How often it was read for a Fetch.
        bytes_out: Bytes of records that consumers were sent.
        failed_produces: Appends that failed otherwise than because it was asked in the wrong place.
        failed_fetches: Likewise reads.
        replicated_bytes: Bytes of records that came from a leader.
        replicated_records: Records that came from a leader.
    """

    __slots__ = (
        "bytes_out",
        "failed_fetches",
        "failed_produces",
        "fetch_requests",
        "produce_requests",
        "replicated_bytes",
        "replicated_records",
    )

    def __init__(self) -> None:
        self.produce_requests = 0
        self.fetch_requests = 0
        self.bytes_out = 0
        self.failed_produces = 0
        self.failed_fetches = 0
        self.replicated_bytes = 0
        self.replicated_records = 0


class TrafficSum(Traffic):
    """That of several partitions, with what was appended to their logs as the leader.

    Attributes:
        bytes_in: Bytes of records.
        records_in: Records, those that end transactions included, as in Kafka.
    """

    __slots__ = ("bytes_in", "records_in")

    def __init__(self) -> None:
        super().__init__()
        self.bytes_in = 0
        self.records_in = 0

    def add(self, partition: LocalReplica) -> None:
        """Add a partition's."""
        one, log = partition.traffic, partition.log
        for name in Traffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(one, name))
        self.bytes_in += log.appended_bytes - one.replicated_bytes
        self.records_in += log.appended_records - one.replicated_records

    def add_sum(self, other: TrafficSum) -> None:
        """Add another sum."""
        for name in (*Traffic.__slots__, *TrafficSum.__slots__):
            setattr(self, name, getattr(self, name) + getattr(other, name))
