"""Counters of a partition since the process began.

The log counts its appended records; these are the other counters. A deleted partition's counts
are added to its node's sum, so no counter falls.

Source: Kafka's BrokerTopicStats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log


class Traffic:
    """The counters of one partition.

    Attributes:
        produce_requests: Appends by clients or coordinators.
        fetch_requests: Reads for Fetch.
        bytes_out: Bytes of records sent to consumers.
        failed_produces: Failed appends, except those sent to the wrong broker.
        failed_fetches: Failed reads, with the same exception.
        replicated_bytes: Bytes of records fetched from a leader.
        replicated_records: Records fetched from a leader.
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
    """The sum of several partitions, with the records that they appended as the leader.

    Attributes:
        bytes_in: Bytes of records.
        records_in: Records, transaction markers included, as in Kafka.
    """

    __slots__ = ("bytes_in", "records_in")

    def __init__(self) -> None:
        super().__init__()
        self.bytes_in = 0
        self.records_in = 0

    def add(self, traffic: Traffic, log: Log) -> None:
        """Add a partition's counters, and those of its log."""
        for name in Traffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(traffic, name))
        self.bytes_in += log.appended_bytes - traffic.replicated_bytes
        self.records_in += log.appended_records - traffic.replicated_records

    def add_sum(self, other: TrafficSum) -> None:
        """Add another sum."""
        for name in (*Traffic.__slots__, *TrafficSum.__slots__):
            setattr(self, name, getattr(self, name) + getattr(other, name))
