"""The verbs, in the order in which `wirebroker --help` and docs/cli.md name them."""

from __future__ import annotations

from typing import Final, NamedTuple


class Verb(NamedTuple):
    """One verb: what it is called, where its command is, what it does in one line."""

    name: str
    place: str  # module:attribute
    help: str


VERBS: Final = (
    Verb(
        "serve",
        "wirebroker.cli.cli_serve:serve",
        "Start a broker and serve until it is stopped.",
    ),
    Verb(
        "join",
        "wirebroker.cli.cli_serve:join",
        "Start a broker as a member of a running Apache Kafka cluster.",
    ),
    Verb("configs", "wirebroker.cli.main:configs", "Print every config with its default."),
    Verb("topic", "wirebroker.cli.verbs.topic:topic", "List, make, change and delete topics."),
    Verb(
        "produce",
        "wirebroker.cli.verbs.produce:produce",
        "Write the lines of standard input to a topic, each as a record.",
    ),
    Verb(
        "consume",
        "wirebroker.cli.verbs.consume:consume",
        "Print the records of topics, and go on as more come.",
    ),
    Verb(
        "group",
        "wirebroker.cli.verbs.group:group",
        "Show consumer groups and their lag, move and delete them.",
    ),
    Verb("config", "wirebroker.cli.verbs.config:config", "Read and change configs."),
    Verb("cluster", "wirebroker.cli.verbs.cluster:cluster", "Show a cluster and its brokers."),
    Verb(
        "features",
        "wirebroker.cli.verbs.features:features",
        "Show and change the features of a cluster.",
    ),
    Verb(
        "quorum",
        "wirebroker.cli.verbs.quorum:quorum",
        "Show the quorum of controllers and who follows it.",
    ),
    Verb(
        "transaction",
        "wirebroker.cli.verbs.transaction:transaction",
        "Show the state of transactional producers, and abort hanging transactions.",
    ),
    Verb(
        "certs",
        "wirebroker.cli.verbs.certs:certs",
        "Make an authority and certificates for a broker and clients, for development.",
    ),
    Verb(
        "share",
        "wirebroker.cli.verbs.share:share",
        "Show share groups, whose members read the same partitions (KIP-932).",
    ),
    Verb("acl", "wirebroker.cli.verbs.acl:acl", "Show and change who may do what (ACLs)."),
    Verb("user", "wirebroker.cli.verbs.user:user", "Show, make and delete users of SCRAM."),
    Verb(
        "token",
        "wirebroker.cli.verbs.token:token",
        "Make, show, renew and end delegation tokens.",
    ),
    Verb("quota", "wirebroker.cli.verbs.quota:quota", "Show and change how much clients may do."),
    Verb("reassign", "wirebroker.cli.verbs.reassign:reassign", "Move replicas to other brokers."),
    Verb(
        "elect",
        "wirebroker.cli.verbs.elect:elect",
        "Have leaders of partitions elected anew.",
    ),
    Verb(
        "doctor",
        "wirebroker.cli.verbs.doctor:doctor",
        "Ask a cluster what support would ask, and say what to do about each answer.",
    ),
    Verb(
        "bench",
        "wirebroker.cli.verbs.bench:bench",
        "Write records to a topic made for it, read them back, and say how fast that went.",
    ),
    Verb(
        "shadow",
        "wirebroker.cli.verbs.shadow:shadow",
        "Copy partitions of a cluster, byte for byte, and verify them on the way.",
    ),
    Verb(
        "dump", "wirebroker.cli.cli_inspect:dump", "Print the contents of a data directory's files."
    ),
    Verb("verify", "wirebroker.cli.cli_inspect:verify", "Say what is wrong in data directories."),
    Verb(
        "repair",
        "wirebroker.cli.cli_inspect:repair",
        "Recover the data directories of a stopped broker.",
    ),
    Verb(
        "pipeline",
        "wirebroker.cli.verbs.pipeline:pipeline",
        "Run a job on Spark, where wirebroker[spark] is installed.",
    ),
    Verb(
        "profile",
        "wirebroker.cli.verbs.profile:profile",
        "Keep clusters by names of one's own, and choose which verbs ask.",
    ),
    Verb(
        "completion",
        "wirebroker.cli.plumbing.completion:completion",
        "Print a shell completion script: bash, zsh or fish.",
    ),
    Verb("commands", "wirebroker.cli.main:commands", "Print every verb with its flags."),
)

# Kafka's own tools by their names; apart, as help and docs/cli.md name them.
SCRIPTS: Final = (
    Verb(
        "kafka-topics",
        "wirebroker.cli.kafka.topics:kafka_topics",
        "List, make, change and delete topics, as kafka-topics.sh.",
    ),
    Verb(
        "kafka-console-producer",
        "wirebroker.cli.kafka.console_producer:kafka_console_producer",
        "Write the lines of standard input to a topic, as kafka-console-producer.sh.",
    ),
    Verb(
        "kafka-console-consumer",
        "wirebroker.cli.kafka.console_consumer:kafka_console_consumer",
        "Print the records of a topic, as kafka-console-consumer.sh.",
    ),
    Verb(
        "kafka-consumer-groups",
        "wirebroker.cli.kafka.consumer_groups:kafka_consumer_groups",
        "List, describe, move and delete consumer groups, as kafka-consumer-groups.sh.",
    ),
    Verb(
        "kafka-get-offsets",
        "wirebroker.cli.kafka.get_offsets:kafka_get_offsets",
        "Print offsets of partitions, as kafka-get-offsets.sh.",
    ),
    Verb(
        "kafka-delete-records",
        "wirebroker.cli.kafka.delete_records:kafka_delete_records",
        "Delete the records before given offsets, as kafka-delete-records.sh.",
    ),
    Verb(
        "kafka-configs",
        "wirebroker.cli.kafka.configs:kafka_configs",
        "Show and change configs, as kafka-configs.sh.",
    ),
    Verb(
        "kafka-acls",
        "wirebroker.cli.kafka.acls:kafka_acls",
        "List, add and remove ACLs, as kafka-acls.sh.",
    ),
    Verb(
        "kafka-dump-log",
        "wirebroker.cli.kafka.dump_log:kafka_dump_log",
        "Print what the files of a partition hold, as kafka-dump-log.sh.",
    ),
    Verb(
        "kafka-producer-perf-test",
        "wirebroker.cli.kafka.producer_perf_test:kafka_producer_perf_test",
        "Write many records and say how fast that went, as kafka-producer-perf-test.sh.",
    ),
    Verb(
        "kafka-broker-api-versions",
        "wirebroker.cli.kafka.operators.broker_api_versions:kafka_broker_api_versions",
        "Print the versions of requests that brokers serve, as kafka-broker-api-versions.sh.",
    ),
    Verb(
        "kafka-cluster",
        "wirebroker.cli.kafka.operators.cluster:kafka_cluster",
        "Show a cluster's id and nodes, unregister a broker, as kafka-cluster.sh.",
    ),
    Verb(
        "kafka-metadata-quorum",
        "wirebroker.cli.kafka.operators.metadata_quorum:kafka_metadata_quorum",
        "Show the quorum of controllers, add and remove voters, as kafka-metadata-quorum.sh.",
    ),
    Verb(
        "kafka-features",
        "wirebroker.cli.kafka.operators.features:kafka_features",
        "Show and change the features of a cluster, as kafka-features.sh.",
    ),
    Verb(
        "kafka-log-dirs",
        "wirebroker.cli.kafka.operators.log_dirs:kafka_log_dirs",
        "Show the data directories of brokers, as kafka-log-dirs.sh.",
    ),
    Verb(
        "kafka-leader-election",
        "wirebroker.cli.kafka.operators.leader_election:kafka_leader_election",
        "Elect leaders of partitions, as kafka-leader-election.sh.",
    ),
    Verb(
        "kafka-transactions",
        "wirebroker.cli.kafka.operators.transactions:kafka_transactions",
        "Show transactions and end hanging ones, as kafka-transactions.sh.",
    ),
    Verb(
        "kafka-groups",
        "wirebroker.cli.kafka.operators.groups:kafka_groups",
        "List groups of all types, as kafka-groups.sh.",
    ),
    Verb(
        "kafka-reassign-partitions",
        "wirebroker.cli.kafka.operators.reassign_partitions:kafka_reassign_partitions",
        "Move replicas to other brokers, as kafka-reassign-partitions.sh.",
    ),
    Verb(
        "kafka-storage",
        "wirebroker.cli.kafka.operators.storage:kafka_storage",
        "Format data directories and show whether they are formatted, as kafka-storage.sh.",
    ),
)
