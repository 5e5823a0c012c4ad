"""Counters of a partition since the process began, besides those of its log.

A deleted partition's counts are added to its node's sum, so no counter falls.

Source: Kafka's BrokerTopicStats.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wirebroker.storage.log.log import Log


class Traffic:
    """The counters of one partition.

    Failed requests that were sent to the wrong broker do not count. `replicated_bytes` and
    `replicated_records` were fetched from a leader.
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

    Transaction markers count as records, as in Kafka.
    """

    __slots__ = ("bytes_in", "records_in")

    def __init__(self) -> None:
        super().__init__()
        self.bytes_in = 0
        self.records_in = 0

    def add(self, traffic: Traffic, log: Log) -> None:
        """Add the counters of a partition and of its log."""
        for name in Traffic.__slots__:
            setattr(self, name, getattr(self, name) + getattr(traffic, name))
        self.bytes_in += log.appended_bytes - traffic.replicated_bytes
        self.records_in += log.appended_records - traffic.replicated_records

    def add_sum(self, other: TrafficSum) -> None:
        """Add another sum."""
        for name in (*Traffic.__slots__, *TrafficSum.__slots__):
            setattr(self, name, getattr(self, name) + getattr(other, name))
