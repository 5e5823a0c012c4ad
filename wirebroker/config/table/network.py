"""Listeners, connections, requests, quotas; threads and plug-ins that are not here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from wirebroker.config.rows.forms import (
    CLUSTER_WIDE,
    INT_MAX,
    PER_BROKER,
    integer,
    items,
    kept,
    long,
    text,
)
from wirebroker.config.rows.row import Effect, OfListener
from wirebroker.config.rows.texts import counts_by_host

if TYPE_CHECKING:
    from wirebroker.config.rows.row import ConfigValue


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
        "the event loop does this work; there are no such threads.",
        """
        background.threads int 10 1.. cluster-wide doubles
        num.io.threads int 8 1.. cluster-wide doubles
        num.network.threads int 3 1.. cluster-wide doubles each
        num.recovery.threads.per.data.dir int 2 1.. cluster-wide doubles
        """,
    ),
    items(
        "config.providers",
        "",
        "Names of config providers: FileConfigProvider, DirectoryConfigProvider and "
        "EnvVarConfigProvider. Only the configuration file and the environment can name them.",
        mutability=CLUSTER_WIDE,
        effect=Effect.KEPT,
    ),
    *kept(
        "no Java classes are loaded.",
        """
        client.quota.callback.class class - - read-only asks
        kafka.metrics.reporters list "" - read-only
        metric.reporters list org.apache.kafka.common.metrics.JmxReporter - cluster-wide class
        principal.builder.class class org.apache.kafka.common.security.authenticator.DefaultKafkaPrincipalBuilder - per-broker class asks
        """,  # noqa: E501 - the name of a class
    ),
    *kept(
        "waiting requests are not kept in purgatories.",
        """
        delete.records.purgatory.purge.interval.requests int 1 - read-only
        fetch.purgatory.purge.interval.requests int 1000 - read-only
        producer.purgatory.purge.interval.requests int 1000 - read-only
        """,
    ),
    *kept(
        "wirebroker measures and publishes metrics in its own way.",
        """
        kafka.metrics.polling.interval.secs int 10 - read-only
        metrics.num.samples int 2 - read-only
        metrics.recording.level string INFO - read-only
        metrics.sample.window.ms long 30000 - read-only
        telemetry.max.bytes int 1048576 - read-only
        """,
    ),
    *kept(
        "wirebroker.request.memory.bytes limits the requests in memory.",
        """
        queued.max.request.bytes long -1 - read-only
        queued.max.requests int 500 - read-only
        """,
    ),
    *kept(
        "connections to other nodes have fixed timeouts.",
        """
        request.timeout.ms int 30000 - read-only
        socket.connection.setup.timeout.max.ms long 30000 - read-only
        socket.connection.setup.timeout.ms long 10000 - read-only
        """,
    ),
)
