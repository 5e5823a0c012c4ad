"""Configs of listeners, connections, requests and quotas; threads and plug-ins without effect."""

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
    integer(
        "telemetry.max.bytes",
        1 << 20,
        "Maximum size of the metrics that a client pushes at once, compressed or not.",
        at_least=1,
    ),
    items(
        "listeners",
        "PLAINTEXT://:9092",
        "Addresses to listen on: NAME://host:port, … An empty host means every interface, port 0 "
        "a free port. At run time, listeners can be added, and listeners that are not advertised "
        "can be removed together with their connections. An open listener keeps its address "
        "until a restart.",
        mutability=PER_BROKER,
        profile="PLAINTEXT://127.0.0.1:9092",
    ),
    items(
        "advertised.listeners",
        "auto",
        "Addresses at which clients connect. With `auto` (the default; Kafka's is the value of "
        "listeners), each client gets the address at which its connection arrived.",
    ),
    text(
        "listener.security.protocol.map",
        "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
        "Security protocol of each listener (NAME:PROTOCOL, …): PLAINTEXT, SSL, SASL_PLAINTEXT "
        "or SASL_SSL.",
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
        "Connections that may wait to be accepted. If unset, as many as the system allows "
        "(net.core.somaxconn), not Kafka's 50.",
        1,
    ),
    integer(
        "socket.send.buffer.bytes",
        102_400,
        "Socket send buffer; -1 means the system's default.",
        -1,
    ),
    integer(
        "socket.receive.buffer.bytes",
        -1,
        "Socket receive buffer; -1 means the system's default, which grows with the traffic.",
        -1,
    ),
    integer(
        "socket.request.max.bytes",
        104_857_600,
        "Largest request that is accepted.",
        1,
    ),
    long(
        "connections.max.idle.ms",
        600_000,
        "Time without requests after which a connection is closed; a negative value disables this.",
    ),
    integer(
        "max.connections",
        INT_MAX,
        "Maximum number of open connections; further ones wait to be accepted. Lowering it "
        "closes the connections that have been idle longest. A listener can have its own limit "
        "(listener.name.<listener>.max.connections).",
        0,
        mutability=CLUSTER_WIDE,
        of_listener=OfListener.CLUSTER_WIDE,
    ),
    integer(
        "max.connections.per.ip",
        INT_MAX,
        "Maximum number of open connections from one address; further ones are closed "
        "immediately. Lowering it closes none. 0 is allowed only with "
        "max.connections.per.ip.overrides.",
        0,
        mutability=CLUSTER_WIDE,
    ),
    text(
        "max.connections.per.ip.overrides",
        "",
        "max.connections.per.ip for single addresses or host names: host:count, …",
        check=_counts_by_host,
        mutability=CLUSTER_WIDE,
    ),
    integer(
        "max.connection.creation.rate",
        INT_MAX,
        "Connections accepted per second, averaged over 11 seconds; further ones wait to be "
        "accepted. A listener can have its own rate "
        "(listener.name.<listener>.max.connection.creation.rate).",
        0,
        mutability=CLUSTER_WIDE,
        of_listener=OfListener.CLUSTER_WIDE,
    ),
    integer(
        "fetch.max.bytes",
        57_671_680,
        "Maximum bytes of records in one Fetch response.",
        1024,
    ),
    integer(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Maximum number of fetch sessions (KIP-227); consumers without one send complete requests.",
        0,
    ),
    integer(
        "max.request.partition.size.limit",
        2000,
        "Maximum number of partitions in one DescribeTopicPartitions response.",
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
        "Names of config providers; their classes can be FileConfigProvider, "
        "DirectoryConfigProvider and EnvVarConfigProvider. It is used from the configuration "
        "file and the environment; a change by a request has no effect.",
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
        "wirebroker has its own metrics.",
        """
        kafka.metrics.polling.interval.secs int 10 - read-only
        metrics.num.samples int 2 - read-only
        metrics.recording.level string INFO - read-only
        metrics.sample.window.ms long 30000 - read-only
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
