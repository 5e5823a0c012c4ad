"""Settings of streams groups, from Kafka's configs `group.streams.*`."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wirebroker.config.table.streams_groups import STREAMS_ASSIGNORS

if TYPE_CHECKING:
    from wirebroker.config import Config


@dataclass(slots=True, frozen=True)
class StreamsSettings:
    """Current settings; the defaults are Kafka's.

    Attributes:
        assignors: Names of the assignors; the first one is used. Kafka 4.4 has one.
        acceptable_recovery_lag: Told to members, which do not use it.
        task_offset_interval_ms: How often members report changelog offsets.
        rack_aware_assignment_tags: Client tags that each member should have.
    """

    assignors: tuple[str, ...] = ("sticky",)
    max_size: int = 2**31 - 1
    session_timeout_ms: int = 45_000
    min_session_timeout_ms: int = 45_000
    max_session_timeout_ms: int = 60_000
    heartbeat_interval_ms: int = 5_000
    min_heartbeat_interval_ms: int = 5_000
    max_heartbeat_interval_ms: int = 15_000
    assignment_interval_ms: int = 1_000
    min_assignment_interval_ms: int = 0
    max_assignment_interval_ms: int = 15_000
    initial_rebalance_delay_ms: int = 3_000
    num_standby_replicas: int = 0
    max_standby_replicas: int = 2
    acceptable_recovery_lag: int = 10_000
    task_offset_interval_ms: int = 60_000
    min_task_offset_interval_ms: int = 15_000
    rack_aware_assignment_tags: tuple[str, ...] = ()

    def with_dynamic(self, config: Config) -> StreamsSettings:
        """Return these settings with the current dynamic configs."""
        return replace(
            self, assignment_interval_ms=config.int("group.streams.assignment.interval.ms")
        )

    @classmethod
    def from_config(cls, config: Config) -> StreamsSettings:
        """Return a broker's settings."""
        return cls(
            assignors=tuple(
                STREAMS_ASSIGNORS[name] for name in config.list("group.streams.assignors")
            ),
            max_size=config.int("group.streams.max.size"),
            session_timeout_ms=config.int("group.streams.session.timeout.ms"),
            min_session_timeout_ms=config.int("group.streams.min.session.timeout.ms"),
            max_session_timeout_ms=config.int("group.streams.max.session.timeout.ms"),
            heartbeat_interval_ms=config.int("group.streams.heartbeat.interval.ms"),
            min_heartbeat_interval_ms=config.int("group.streams.min.heartbeat.interval.ms"),
            max_heartbeat_interval_ms=config.int("group.streams.max.heartbeat.interval.ms"),
            assignment_interval_ms=config.int("group.streams.assignment.interval.ms"),
            min_assignment_interval_ms=config.int("group.streams.min.assignment.interval.ms"),
            max_assignment_interval_ms=config.int("group.streams.max.assignment.interval.ms"),
            initial_rebalance_delay_ms=config.int("group.streams.initial.rebalance.delay.ms"),
            num_standby_replicas=config.int("group.streams.num.standby.replicas"),
            max_standby_replicas=config.int("group.streams.max.standby.replicas"),
            acceptable_recovery_lag=config.int("group.streams.acceptable.recovery.lag"),
            task_offset_interval_ms=config.int("group.streams.task.offset.interval.ms"),
            min_task_offset_interval_ms=config.int("group.streams.min.task.offset.interval.ms"),
            rack_aware_assignment_tags=config.list("group.streams.rack.aware.assignment.tags"),
        )
