"""Configs of the node's identity, its controller and the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import boolean, integer, items, kept, long, text
from wirebroker.config.rows.texts import path_wish, short_wish

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue


def _roles(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    if set(value) in ({"broker", "controller"}, {"broker"}, {"controller"}):
        return None
    return "it must be broker,controller, broker or controller"


ROWS: Final = (
    integer(
        "node.id",
        1,
        "Id of this node. Kafka has no default; wirebroker's is 1.",
        0,
    ),
    integer(
        "broker.id",
        -1,
        "Older name of node.id; -1 means unset.",
        -1,
    ),
    items(
        "process.roles",
        "broker,controller",
        "Roles of this process: broker,controller is a broker with a controller, controller is "
        "only a controller, broker joins the controllers of "
        "controller.quorum.bootstrap.servers. Kafka has no default.",
        check=_roles,
    ),
    items(
        "controller.quorum.voters",
        "",
        "Voters (id@host:port) of a quorum with static voters: those that a broker joins, or those "
        "of which this controller is one.",
    ),
    items(
        "controller.quorum.bootstrap.servers",
        "",
        "Controllers (host:port) through which brokers and controllers find the quorum; the first "
        "one that responds names the others.",
    ),
    items(
        "controller.listener.names",
        "",
        "Listeners of the controller, for other nodes; the broker in the same process needs none.",
    ),
    integer(
        "broker.heartbeat.interval.ms",
        2_000,
        "Interval of the heartbeats that a broker sends to controllers in other processes.",
    ),
    integer(
        "broker.session.timeout.ms",
        9_000,
        "Time without a heartbeat after which the controller fences a broker.",
    ),
    integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        "How long a broker tries to find the controllers and to register with them.",
    ),
    text(
        "broker.rack",
        None,
        "Rack of this broker; Metadata responses contain it.",
        check=short_wish,
    ),
    text(
        "metadata.log.dir",
        None,
        "Directory of the metadata log; if unset, the first of log.dirs.",
        check=path_wish,
    ),
    long(
        "metadata.log.max.record.bytes.between.snapshots",
        20_971_520,
        "Bytes of metadata records after which a snapshot is written.",
        1,
    ),
    long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        "Time after which a snapshot is written if there are new records; 0 disables this.",
        0,
    ),
    integer(
        "controller.quorum.election.timeout.ms",
        1_000,
        "Time without a leader after which a controller begins an election, and up to the same "
        "time more, at random.",
        0,
    ),
    integer(
        "controller.quorum.fetch.timeout.ms",
        2_000,
        "Time without a response of the leader after which a controller begins an election, and a "
        "broker considers it silent. A leader resigns if a majority has not fetched for one and a "
        "half times this time.",
        1,
    ),
    integer(
        "controller.quorum.election.backoff.max.ms",
        1_000,
        "Longest pause of a controller before it begins an election after another one resigned.",
        0,
    ),
    integer(
        "controller.quorum.request.timeout.ms",
        2_000,
        "How long a controller or broker waits for a response from a controller of the quorum.",
        1,
    ),
    integer(
        "controller.quorum.retry.backoff.ms",
        20,
        "Pause before a controller or broker repeats a failed request to the quorum.",
        0,
    ),
    integer(
        "controller.quorum.fetch.max.bytes",
        1_048_576,
        "Most bytes of the metadata log that a controller or broker fetches in one request.",
        1,
    ),
    integer(
        "controller.quorum.fetch.snapshot.max.bytes",
        1_048_576,
        "Most bytes of a metadata snapshot that a controller or broker fetches in one request.",
        1,
    ),
    boolean(
        "controller.quorum.auto.join.enable",
        False,
        "Whether a controller that is not a voter adds itself to the voters, also after it was "
        "removed (kraft.version 1).",
    ),
    *kept(
        "a change of the metadata is appended at once; one sync covers all changes that wait.",
        """
        controller.quorum.append.linger.ms int 25 - read-only
        """,
    ),
    *kept(
        "the controller's events and sockets have fixed limits.",
        """
        controller.performance.always.log.threshold.ms long 2000 - read-only internal
        controller.performance.sample.period.ms long 60000 - read-only internal
        controller.socket.timeout.ms int 30000 - read-only
        """,
    ),
    *kept(
        "the metadata log has fixed sizes and intervals, and snapshots limit its size.",
        """
        internal.metadata.delete.delay.millis long 60000 - read-only internal
        internal.metadata.log.segment.bytes int - - read-only internal
        internal.metadata.max.batch.size.in.bytes int 8388608 - read-only internal
        metadata.log.segment.bytes int 1073741824 - read-only
        metadata.log.segment.ms long 604800000 - read-only
        metadata.max.idle.interval.ms int 500 - read-only
        metadata.max.retention.bytes long 104857600 - read-only
        metadata.max.retention.ms long 604800000 - read-only
        """,
    ),
    *kept(
        "API versions and features that Apache Kafka has not released are not supported.",
        """
        unstable.api.versions.enable boolean false - read-only internal
        unstable.feature.versions.enable boolean false - read-only internal
        """,
    ),
    *kept(
        "a broker starts, opens its listeners and shuts down in a fixed order.",
        """
        controlled.shutdown.enable boolean true - read-only
        early.start.listeners list - - read-only
        server.max.startup.time.ms long 9223372036854775807 - read-only internal
        """,
    ),
)
