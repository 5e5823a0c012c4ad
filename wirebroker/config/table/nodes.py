"""What this node is, its controller and the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.forms import integer, items, long, named, text
from wirebroker.config.texts import path_wish, short_wish

if TYPE_CHECKING:
    from wirebroker.config.row import ConfigValue


def _roles(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    if set(value) in ({"broker", "controller"}, {"broker"}, {"controller"}):
        return None
    return "it must be broker,controller, broker (joins others), or controller"


ROWS: Final = (
    integer(
        "node.id",
        1,
        "This node's number. Kafka has no default; ours is 1.",
        0,
    ),
    integer(
        "broker.id",
        -1,
        "The older name of node.id; -1 is unset.",
        -1,
    ),
    items(
        "process.roles",
        "broker,controller",
        "What this process is: broker,controller brings its own one-voter controller, controller "
        "is one alone, broker joins those of controller.quorum.bootstrap.servers. Kafka has no "
        "default.",
        check=_roles,
    ),
    items(
        "controller.quorum.voters",
        "",
        "The controllers (id@host:port): those to join, or, with a controller of its own, only "
        "this node itself.",
    ),
    items(
        "controller.quorum.bootstrap.servers",
        "",
        "Controllers (host:port) that a broker joins; one that answers names the others.",
    ),
    items(
        "controller.listener.names",
        "",
        "Listeners of the controller, for other nodes; the broker beside it needs none.",
    ),
    integer(
        "broker.heartbeat.interval.ms",
        2_000,
        "How often a broker that has joined others is heard of by their controller.",
    ),
    integer(
        "broker.session.timeout.ms",
        9_000,
        "After so long without a heartbeat the controller takes a broker for gone.",
    ),
    integer(
        "initial.broker.registration.timeout.ms",
        60_000,
        "How long a broker tries to find the controllers and to be registered by them.",
    ),
    text(
        "broker.rack",
        None,
        "Where this broker stands; clients see it in Metadata.",
        check=short_wish,
    ),
    text(
        "metadata.log.dir",
        None,
        "Where the metadata log lies; if unset, in the first log.dirs.",
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
        "Time after which a snapshot is written if there is anything new; 0 is never.",
        0,
    ),
    *named("""
        controlled.shutdown.enable
        controller.performance.always.log.threshold.ms
        controller.performance.sample.period.ms
        controller.quorum.append.linger.ms
        controller.quorum.auto.join.enable
        controller.quorum.election.backoff.max.ms
        controller.quorum.election.timeout.ms
        controller.quorum.fetch.max.bytes
        controller.quorum.fetch.snapshot.max.bytes
        controller.quorum.fetch.timeout.ms
        controller.quorum.request.timeout.ms
        controller.quorum.retry.backoff.ms
        controller.socket.timeout.ms
        early.start.listeners list
        internal.metadata.delete.delay.millis
        internal.metadata.log.segment.bytes
        internal.metadata.max.batch.size.in.bytes
        metadata.log.segment.bytes
        metadata.log.segment.ms
        metadata.max.idle.interval.ms
        metadata.max.retention.bytes
        metadata.max.retention.ms
        server.max.startup.time.ms
        unstable.api.versions.enable
        unstable.feature.versions.enable
    """),
)
