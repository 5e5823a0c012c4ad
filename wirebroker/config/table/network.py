"""Listeners, connections, requests, quotas; threads and plug-ins that are not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.forms import (
    CLUSTER_WIDE,
    INT_MAX,
    PER_BROKER,
    integer,
    items,
    kept,
    long,
    named,
    text,
)
from wirebroker.config.row import OfListener
from wirebroker.config.texts import counts_by_host

if TYPE_CHECKING:
    from wirebroker.config.row import ConfigValue


def _counts_by_host(value: ConfigValue) -> str | None:
    assert isinstance(value, str)
    try:
        counts_by_host(value)
    except ValueError:
        return "it must be a list of host:count"
    return None


ROWS: Final = (
    items(
        "listeners",
        "PLAINTEXT://:9092",
        "Addresses to listen at: NAME://host:port, … An empty host is every interface, port 0 "
        "a free one. While the broker runs listeners can be added, and those that are not "
        "advertised removed, with their connections; one that is open keeps its address until "
        "a restart.",
        mutability=PER_BROKER,
        profile="PLAINTEXT://127.0.0.1:9092",
    ),
    items(
        "advertised.listeners",
        "auto",
        "Addresses that clients are told. `auto` (our default; Kafka's is the value of "
        "listeners) tells each client the address at which its connection arrived.",
    ),
    text(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener's name: PLAINTEXT or SASL_PLAINTEXT; those with TLS "
        "cannot be opened.",
        mutability=PER_BROKER,
    ),
    text(
        "inter.broker.listener.name",
        None,
        "Listener for the other brokers; must be one of the advertised listeners.",
    ),
    integer(
        "socket.listen.backlog.size",
        50,
        "Connections that may wait to be accepted. If unset: as many as the system allows "
        "(net.core.somaxconn), not Kafka's 50.",
        1,
    ),
    integer(
        "socket.send.buffer.bytes",
        102_400,
        "Socket send buffer; -1 is the system's default.",
        -1,
    ),
    integer(
        "socket.receive.buffer.bytes",
        -1,
        "Socket receive buffer; -1 is the system's default, which grows with what arrives.",
        -1,
    ),
    integer(
        "socket.request.max.bytes",
        104_857_600,
        "Largest request that is read.",
        1,
    ),
    long(
        "connections.max.idle.ms",
        600_000,
        "A connection without requests for this long is closed; negative is never.",
    ),
    integer(
        "max.connections",
        INT_MAX,
        "Connections open at a time; one more waits to be accepted. When it is lowered, those "
        "that have been quiet longest are closed. A listener may have its own "
        "(listener.name.<listener>.max.connections).",
        0,
        mutability=CLUSTER_WIDE,
        of_listener=OfListener.CLUSTER_WIDE,
    ),
    integer(
        "max.connections.per.ip",
        INT_MAX,
        "Connections open at a time from one address; one more is closed at once. Those that "
        "are open stay when it is lowered. 0 only beside max.connections.per.ip.overrides.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    text(
        "max.connections.per.ip.overrides",
        "",
        "max.connections.per.ip of single addresses or host names: host:count, …",
        check=_counts_by_host,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "max.connection.creation.rate",
        INT_MAX,
        "Connections accepted in a second, averaged over 11 of them; further ones wait to be "
        "accepted. A listener may have its own "
        "(listener.name.<listener>.max.connection.creation.rate).",
        0,
        mutability=CLUSTER_WIDE,
        of_listener=OfListener.CLUSTER_WIDE,
    ),
    integer(
        "fetch.max.bytes",
        57_671_680,
        "Most bytes of records in one Fetch response.",
        1024,
    ),
    integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Fetch sessions (KIP-227) kept; the next consumer sends whole requests.",
        0,
    ),
    integer(
        "max.request.partition.size.limit",
        2000,
        "Most partitions in one DescribeTopicPartitions response.",
        1,
    ),
    *kept(
        "One event loop does it all: there are no such threads.",
        """
        background.threads int 10 1.. cluster-wide doubles
        num.io.threads int 8 1.. cluster-wide doubles
        num.network.threads int 3 1.. cluster-wide doubles each
        num.recovery.threads.per.data.dir int 2 1.. cluster-wide doubles
        """,
    ),
    *kept(
        "Names of config providers: FileConfigProvider, DirectoryConfigProvider and"
        " EnvVarConfigProvider. Only the configuration file and the environment can name them.",
        """
        config.providers list "" - cluster-wide
        """,
    ),
    *kept(
        "No Java classes are loaded.",
        """
        metric.reporters list org.apache.kafka.common.metrics.JmxReporter - cluster-wide class
        principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder - per-broker class asks
        """,  # noqa: E501 - the name of a class
    ),
    *named("""
        client.quota.callback.class asks
        delete.records.purgatory.purge.interval.requests
        fetch.purgatory.purge.interval.requests
        kafka.metrics.polling.interval.secs
        kafka.metrics.reporters list
        metrics.num.samples
        metrics.recording.level
        metrics.sample.window.ms
        producer.purgatory.purge.interval.requests
        queued.max.request.bytes
        queued.max.requests
        request.timeout.ms
        socket.connection.setup.timeout.max.ms
        socket.connection.setup.timeout.ms
        telemetry.max.bytes
    """),
)
