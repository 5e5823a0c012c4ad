"""The broker configs that have an effect: one row each.

Rows are added with the feature that reads them; Kafka's other names stand in config_names.py and
are accepted without effect. A row that gives a topic config its default is made from the topic's
row, so type, range and text are said once.

A leaf.  Source: defaults, ranges and mutability are Kafka 4.3's; what deviates says so in its doc.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final, NamedTuple

from wirebroker.config_row import ConfigRow, ConfigType, ConfigValue, Mutability
from wirebroker.config_topic import LONG_MAX, TOPIC_ROWS

INT_MAX: Final = (1 << 31) - 1


def _text(name: str, default: str | None, doc: str) -> ConfigRow:
    return ConfigRow(name=name, type=ConfigType.STRING, default=default, doc=doc)


def _list(name: str, default: str | None, doc: str) -> ConfigRow:
    return ConfigRow(name=name, type=ConfigType.LIST, default=default, doc=doc)


def _boolean(name: str, default: str, doc: str) -> ConfigRow:
    return ConfigRow(name=name, type=ConfigType.BOOLEAN, default=default, doc=doc)


def _number(
    name: str,
    default: int | None,
    doc: str,
    at_least: int | None = None,
    *,
    type: ConfigType = ConfigType.INT,  # noqa: A002 - the row's own word
    mutability: Mutability = Mutability.READ_ONLY,
) -> ConfigRow:
    return ConfigRow(
        name=name,
        type=type,
        default=None if default is None else str(default),
        doc=doc,
        at_least=at_least,
        mutability=mutability,
    )


def _long(name: str, default: int | None, doc: str, at_least: int | None = None) -> ConfigRow:
    return _number(name, default, doc, at_least, type=ConfigType.LONG)


def _short(name: str, default: int, doc: str) -> ConfigRow:
    return _number(name, default, doc, 1, type=ConfigType.SHORT)


def _roles(value: ConfigValue) -> str | None:
    assert isinstance(value, tuple)
    if set(value) == {"broker", "controller"}:
        return None
    return "it must be broker,controller (this broker brings its own one-voter controller)"


_IDENTITY = (
    _number("node.id", 1, "This node's number. Kafka has no default; ours is 1.", 0),
    _number("broker.id", -1, "The older name of node.id; -1 is unset.", -1),
    replace(
        _list(
            "process.roles",
            "broker,controller",
            "What this process is; only broker and controller in one. Kafka has no default.",
        ),
        check=_roles,
    ),
    _list(
        "controller.quorum.voters",
        "",
        "The controllers (id@host:port). Only this node itself may stand here.",
    ),
    _list(
        "controller.listener.names",
        "",
        "Listeners of Kafka's controller. They are not opened: the controller within needs none.",
    ),
    _text("broker.rack", None, "Where this broker stands; clients see it in Metadata."),
)

_LISTENERS = (
    replace(
        _list(
            "listeners",
            "PLAINTEXT://:9092",
            "Addresses to listen at: NAME://host:port, … An empty host is every interface, port 0 "
            "a free one.",
        ),
        mutability=Mutability.PER_BROKER,
    ),
    _list(
        "advertised.listeners",
        "auto",
        "Addresses that clients are told. `auto` (our default; Kafka's is the value of listeners) "
        "tells each client the address at which its connection arrived.",
    ),
    replace(
        _text(
            "listener.security.protocol.map",
            "SASL_SSL:SASL_SSL,PLAINTEXT:PLAINTEXT,SSL:SSL,SASL_PLAINTEXT:SASL_PLAINTEXT",
            "Security protocol of each listener's name. Only PLAINTEXT listeners can be opened.",
        ),
        mutability=Mutability.PER_BROKER,
    ),
    _text(
        "inter.broker.listener.name",
        None,
        "Listener for the other brokers; must be one of the advertised listeners.",
    ),
    _number("socket.listen.backlog.size", 50, "Connections that may wait to be accepted.", 1),
    _number(
        "socket.send.buffer.bytes", 102_400, "Socket send buffer; -1 is the system's default.", -1
    ),
    _number(
        "socket.receive.buffer.bytes",
        -1,
        "Socket receive buffer; -1 is the system's default, which grows with what arrives.",
        -1,
    ),
    _number("socket.request.max.bytes", 104_857_600, "Largest request that is read.", 1),
    _long(
        "connections.max.idle.ms",
        600_000,
        "A connection without requests for this long is closed; negative is never.",
    ),
    _number(
        "max.connections",
        INT_MAX,
        "Connections open at a time; one more is closed at once.",
        0,
        mutability=Mutability.CLUSTER_WIDE,
    ),
    _number(
        "max.connections.per.ip",
        INT_MAX,
        "Connections open at a time from one address.",
        0,
        mutability=Mutability.CLUSTER_WIDE,
    ),
)

_REQUESTS = (
    _number("fetch.max.bytes", 57_671_680, "Most bytes of records in one Fetch response.", 1024),
    _number(
        "max.incremental.fetch.session.cache.slots",
        1000,
        "Fetch sessions (KIP-227) kept; the next consumer sends whole requests.",
        0,
    ),
    _number(
        "max.request.partition.size.limit",
        2000,
        "Most partitions in one DescribeTopicPartitions response.",
        1,
    ),
    _number(
        "producer.id.expiration.ms",
        86_400_000,
        "An idle idempotent producer's sequence numbers are forgotten after this.",
        1,
        mutability=Mutability.CLUSTER_WIDE,
    ),
    replace(
        _number(
            "producer.id.expiration.check.interval.ms",
            600_000,
            "How often idle producers are looked for.",
            1,
        ),
        internal=True,
    ),
)

_TRANSACTIONS = (
    _number(
        "transaction.max.timeout.ms",
        900_000,
        "Longest transaction timeout that a producer may ask for.",
        1,
    ),
    _number(
        "transactional.id.expiration.ms",
        604_800_000,
        "A transactional id that is not used for so long is forgotten.",
        1,
    ),
    _number(
        "transaction.abort.timed.out.transaction.cleanup.interval.ms",
        10_000,
        "How often transactions that take too long are looked for, and aborted.",
        1,
    ),
    _number(
        "transaction.remove.expired.transaction.cleanup.interval.ms",
        3_600_000,
        "How often transactional ids that have expired are looked for.",
        1,
    ),
    replace(
        _boolean(
            "transaction.partition.verification.enable",
            "true",
            "Ask the coordinator whether a transaction's first batch belongs to it (KIP-890).",
        ),
        mutability=Mutability.CLUSTER_WIDE,
    ),
    _number(
        "add.partitions.to.txn.retry.backoff.ms",
        20,
        "Time between two tries to add a partition while the last transaction is being ended.",
        1,
    ),
    _number(
        "add.partitions.to.txn.retry.backoff.max.ms",
        100,
        "How long that is tried before the producer is told to try again.",
        0,
    ),
)

_TOPICS = (
    _boolean("auto.create.topics.enable", "true", "Create a topic when a client asks for it."),
    _boolean("delete.topic.enable", "true", "Let DeleteTopics delete."),
    _number("num.partitions", 1, "Partitions of a topic whose creator doesn't say.", 1),
    _number(
        "default.replication.factor", 1, "Replicas of a topic whose creator doesn't say; one node."
    ),
    _number(
        "offsets.topic.num.partitions",
        50,
        "Partitions of __consumer_offsets when it is created.",
        1,
    ),
    _short(
        "offsets.topic.replication.factor",
        3,
        "Replicas of __consumer_offsets when it is created.",
    ),
    _number(
        "offsets.topic.segment.bytes",
        104_857_600,
        "Segment size of __consumer_offsets when it is created.",
        1,
    ),
    _number(
        "transaction.state.log.num.partitions",
        50,
        "Partitions of __transaction_state when it is created.",
        1,
    ),
    _short(
        "transaction.state.log.replication.factor",
        3,
        "Replicas of __transaction_state when it is created.",
    ),
    _number(
        "transaction.state.log.min.isr",
        2,
        "min.insync.replicas of __transaction_state when it is created.",
        1,
    ),
    _number(
        "transaction.state.log.segment.bytes",
        104_857_600,
        "Segment size of __transaction_state when it is created.",
        1,
    ),
    _number(
        "share.coordinator.state.topic.num.partitions",
        50,
        "Partitions of __share_group_state; read from share groups on.",
        1,
    ),
    _short(
        "share.coordinator.state.topic.replication.factor",
        3,
        "Replicas of __share_group_state; read from share groups on.",
    ),
    _short(
        "share.coordinator.state.topic.min.isr",
        2,
        "min.insync.replicas of __share_group_state; read from share groups on.",
    ),
    _number(
        "share.coordinator.state.topic.segment.bytes",
        104_857_600,
        "Segment size of __share_group_state; read from share groups on.",
        1,
    ),
    _number(
        "group.min.session.timeout.ms", 6000, "Shortest session timeout that a member may ask for."
    ),
    _number(
        "group.max.session.timeout.ms",
        1_800_000,
        "Longest session timeout that a member may ask for.",
    ),
    _number("group.max.size", 2**31 - 1, "Most members of a group.", 1),
    _number("offset.metadata.max.bytes", 4096, "Longest text that a commit may add to an offset."),
    _number(
        "offsets.retention.minutes",
        10_080,
        "How long committed offsets of a group without members are kept.",
        1,
    ),
    _long(
        "offsets.retention.check.interval.ms",
        600_000,
        "How often offsets are looked through for expired ones.",
        1,
    ),
    _number("offsets.commit.timeout.ms", 5000, "How long a commit may take to be on the log.", 1),
    _number(
        "offsets.topic.compression.codec",
        0,
        "Codec of the records in __consumer_offsets: 0 none, 1 gzip, 2 snappy, 3 lz4, 4 zstd.",
        0,
    ),
    _number(
        "group.initial.rebalance.delay.ms",
        3000,
        "How long a new group waits for more members before its first rebalance.",
    ),
)

_COMPACTION = (
    _boolean("log.cleaner.enable", "true", "Whether logs are compacted at all."),
    _number(
        "log.cleaner.threads",
        1,
        "How many logs are compacted at a time, each by a process of its own at lowest priority.",
        0,
        mutability=Mutability.CLUSTER_WIDE,
    ),
    replace(
        _long(
            "log.cleaner.backoff.ms",
            15_000,
            "Time between two looks for logs to compact, while there are none.",
            0,
        ),
        mutability=Mutability.CLUSTER_WIDE,
    ),
    replace(
        _long(
            "log.cleaner.dedupe.buffer.size",
            128 << 20,
            "Memory for the keys of the logs that are compacted at a time, 24 bytes a key. With "
            "more keys a log is compacted in several turns.",
            (1 << 20) + 1,
        ),
        mutability=Mutability.CLUSTER_WIDE,
    ),
    replace(
        _text("log.cleaner.io.buffer.load.factor", "0.9", "How full the memory for keys may be."),
        type=ConfigType.DOUBLE,
        at_least=0.01,
        at_most=1.0,
        mutability=Mutability.CLUSTER_WIDE,
    ),
    replace(
        _text(
            "log.cleaner.io.max.bytes.per.second",
            "1.7976931348623157E308",
            "How much compaction may read and write, all processes together.",
        ),
        type=ConfigType.DOUBLE,
        at_least=1.0,
        mutability=Mutability.CLUSTER_WIDE,
    ),
)

_LOG_DIRECTORIES = (
    _list("log.dirs", None, "Where data lies. If unset: log.dir."),
    _list("log.dir", "/tmp/kafka-logs", "Where data lies if log.dirs is unset."),  # noqa: S108
    _text(
        "metadata.log.dir", None, "Where the metadata log lies; if unset, in the first log.dirs."
    ),
    _long(
        "replica.high.watermark.checkpoint.interval.ms",
        5000,
        "How often high watermarks are written down.",
    ),
    _number(
        "log.flush.offset.checkpoint.interval.ms",
        60_000,
        "How often it is written down what is on the disk for sure: an unclean stop's restart "
        "reads the rest.",
        0,
    ),
    _number(
        "log.flush.start.offset.checkpoint.interval.ms",
        60_000,
        "How often log start offsets are written down; DeleteRecords does not wait for it.",
        0,
    ),
    replace(
        _long(
            "log.initial.task.delay.ms",
            30_000,
            "Time from the start to the first retention check and checkpoints.",
            0,
        ),
        internal=True,
    ),
    _long(
        "log.retention.check.interval.ms",
        300_000,
        "How often logs are looked at for segments that retention deletes.",
        1,
    ),
    *_COMPACTION,
    _long(
        "metadata.log.max.record.bytes.between.snapshots",
        20_971_520,
        "Bytes of metadata records after which a snapshot is written.",
        1,
    ),
    _long(
        "metadata.log.max.snapshot.interval.ms",
        3_600_000,
        "Time after which a snapshot is written if there is anything new; 0 is never.",
        0,
    ),
)

_OWN = (
    replace(
        _text(
            "wirebroker.durability",
            "os",
            "When records count as committed: os, once they are in the page cache, as in Apache "
            "Kafka (they survive the end of the process, not the loss of power); fsync, once they "
            "are on the disk.",
        ),
        choices=("os", "fsync"),
    ),
    _text(
        "wirebroker.cluster.id",
        None,
        "Cluster id of a new data directory (the environment's CLUSTER_ID); random if unset.",
    ),
    _long(
        "wirebroker.request.memory.bytes",
        256 << 20,
        "Memory for requests in flight, all connections together; beyond it reading waits.",
        1 << 20,
    ),
    _number(
        "wirebroker.frame.deadline.ms",
        30_000,
        "A request must have arrived whole this long after its first byte.",
        1,
    ),
    replace(
        _text("wirebroker.log.format", "text", "Form of the log lines on standard error."),
        choices=("text", "json"),
    ),
    replace(
        _text("wirebroker.log.level", "info", "Least level that is logged."),
        choices=("debug", "info", "warning", "error"),
    ),
    _number(
        "wirebroker.open.files",
        32_768,
        "Data files held open at a time, if half of the process's limit of open files allows; "
        "the rest are reopened. A partition in use has 3.",
        16,
    ),
)


class _Variant(NamedTuple):
    """How one of several broker configs for the same topic config differs from the topic's row."""

    type: ConfigType
    default: str | None
    at_least: int | None
    mutability: Mutability


_DYNAMIC_MS = _Variant(ConfigType.LONG, None, None, Mutability.CLUSTER_WIDE)


def _static_int(default: str | None, at_least: int | None) -> _Variant:
    return _Variant(ConfigType.INT, default, at_least, Mutability.READ_ONLY)


# Where several names set one thing, only the last has a default, and only the one in the topic's
# unit can be changed while the broker runs.
_VARIANTS: Final = {
    "log.roll.ms": _DYNAMIC_MS,
    "log.roll.hours": _static_int("168", 1),
    "log.roll.jitter.ms": _DYNAMIC_MS,
    "log.roll.jitter.hours": _static_int("0", 0),
    "log.retention.ms": _DYNAMIC_MS,
    "log.retention.minutes": _static_int(None, None),
    "log.retention.hours": _static_int("168", None),
    "log.flush.interval.ms": _DYNAMIC_MS,
    "log.flush.scheduler.interval.ms": _Variant(
        ConfigType.LONG, str(LONG_MAX), None, Mutability.READ_ONLY
    ),
}


def _log_rows() -> list[ConfigRow]:
    """Make the rows of the broker configs that give topic configs their defaults."""
    rows: list[ConfigRow] = []
    for topic_row in TOPIC_ROWS.values():
        names = topic_row.synonyms
        for name in names:
            row = replace(
                topic_row,
                name=name,
                doc=f"Default of the topic config {topic_row.name}. {topic_row.doc}",
                topic_name=topic_row.name,
                synonyms=names if len(names) > 1 else (),
                mutability=Mutability.CLUSTER_WIDE,
            )
            variant = _VARIANTS.get(name)
            rows.append(row if variant is None else replace(row, **variant._asdict()))
    return rows


BROKER_ROWS: Final = {
    row.name: row
    for row in (
        *_IDENTITY,
        *_LISTENERS,
        *_REQUESTS,
        *_TRANSACTIONS,
        *_TOPICS,
        *_LOG_DIRECTORIES,
        *_log_rows(),
        *_OWN,
    )
}

# What an unconfigured broker (no --config) does otherwise than Kafka: one node, one machine.
# Ten at most; docs/guide.md gives the reasons.
ONE_NODE_PROFILE: Final = {
    "listeners": "PLAINTEXT://127.0.0.1:9092",
    "log.dirs": "./data",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
}
