"""The verbs, in the order of `wirebroker --help` and docs/cli.md."""

from __future__ import annotations

from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A row of the table."""

    name: str
    place: str  # module:attribute
    help: str


VERBS: Final = (
    Verb(
        "serve",
        "wirebroker.cli.cli_serve:serve",
        "Start a broker and run it until it is stopped.",
    ),
    Verb(
        "join",
        "wirebroker.cli.cli_join:join",
        "Start a broker as a member of a running cluster, wirebroker's or Apache Kafka's.",
    ),
    Verb(
        "format",
        "wirebroker.cli.verbs.format:format_",
        "Format the data directories of a stopped node.",
    ),
    Verb("configs", "wirebroker.cli.main:configs", "Print all configs with their defaults."),
    Verb("topic", "wirebroker.cli.verbs.topic:topic", "List, create, change and delete topics."),
    Verb(
        "produce",
        "wirebroker.cli.verbs.produce:produce",
        "Write each line of standard input to a topic, as a record.",
    ),
    Verb(
        "consume",
        "wirebroker.cli.verbs.consume:consume",
        "Print the records of topics, and wait for more.",
    ),
    Verb(
        "group",
        "wirebroker.cli.verbs.group:group",
        "Show groups of all kinds and their lag, reset their committed offsets, delete groups.",
    ),
    Verb("config", "wirebroker.cli.verbs.config:config", "Show and change configs."),
    Verb("cluster", "wirebroker.cli.verbs.cluster:cluster", "Show a cluster and its brokers."),
    Verb(
        "features",
        "wirebroker.cli.verbs.features:features",
        "Show and change the features of a cluster.",
    ),
    Verb(
        "quorum",
        "wirebroker.cli.verbs.quorum:quorum",
        "Show the quorum of controllers; add and remove voters.",
    ),
    Verb(
        "transaction",
        "wirebroker.cli.verbs.transaction:transaction",
        "Show the state of transactional producers, and abort hanging transactions.",
    ),
    Verb(
        "certs",
        "wirebroker.cli.verbs.certs:certs",
        "Create a CA and certificates for a broker and clients, for development.",
    ),
    Verb(
        "share",
        "wirebroker.cli.verbs.share:share",
        "Show and change share groups, and consume as a member of one (KIP-932).",
    ),
    Verb("acl", "wirebroker.cli.verbs.acl:acl", "Show and change permissions (ACLs)."),
    Verb("user", "wirebroker.cli.verbs.user:user", "Show, create and delete users of SCRAM."),
    Verb(
        "token",
        "wirebroker.cli.verbs.token:token",
        "Create, show, renew and expire delegation tokens.",
    ),
    Verb("quota", "wirebroker.cli.verbs.quota:quota", "Show and change client quotas."),
    Verb("reassign", "wirebroker.cli.verbs.reassign:reassign", "Move replicas to other brokers."),
    Verb(
        "elect",
        "wirebroker.cli.verbs.elect:elect",
        "Elect leaders of partitions.",
    ),
    Verb(
        "doctor",
        "wirebroker.cli.verbs.doctor:doctor",
        "Check a cluster's health and suggest a fix for each problem.",
    ),
    Verb(
        "bench",
        "wirebroker.cli.verbs.bench:bench",
        "Measure throughput: write records to a temporary topic and read them back.",
    ),
    Verb(
        "console",
        "wirebroker.cli.services.console:console",
        "Show and change clusters in a browser (requires wirebroker[console]).",
    ),
    Verb(
        "console-user",
        "wirebroker.cli.services.console_users:console_user",
        "Manage the users of `wirebroker console`.",
    ),
    Verb(
        "console-token",
        "wirebroker.cli.services.console_users:console_token",
        "Manage the tokens of programs that use the HTTP interface of `wirebroker console`.",
    ),
    Verb(
        "shadow",
        "wirebroker.cli.verbs.shadow:shadow",
        "Copy partitions of a cluster byte for byte, and verify them.",
    ),
    Verb(
        "delivery",
        "wirebroker.cli.services.delivery:delivery",
        "Deliver scheduled and retried records; show and change pending ones.",
    ),
    Verb(
        "dlq",
        "wirebroker.cli.services.dlq:dlq",
        "List, show, redrive and delete dead letters.",
    ),
    Verb(
        "dump", "wirebroker.cli.cli_inspect:dump", "Print the contents of a data directory's files."
    ),
    Verb("verify", "wirebroker.cli.cli_inspect:verify", "Check data directories for damage."),
    Verb(
        "repair",
        "wirebroker.cli.cli_inspect:repair",
        "Recover the data directories of a stopped broker.",
    ),
    Verb(
        "pipeline",
        "wirebroker.cli.verbs.pipeline:pipeline",
        "Run a Spark job (requires wirebroker[spark]).",
    ),
    Verb(
        "profile",
        "wirebroker.cli.verbs.profile:profile",
        "Manage profiles: named clusters, one of which is in use.",
    ),
    Verb(
        "completion",
        "wirebroker.cli.plumbing.completion:completion",
        "Print a shell completion script: bash, zsh or fish.",
    ),
    Verb("commands", "wirebroker.cli.main:commands", "Print all verbs with their flags."),
)

# Listed separately in help and docs/cli.md.
SCRIPTS: Final = (
    Verb(
        "kafka-topics",
        "wirebroker.cli.kafka.topics:kafka_topics",
        "List, create, change and delete topics, as kafka-topics.sh.",
    ),
    Verb(
        "kafka-console-producer",
        "wirebroker.cli.kafka.console_producer:kafka_console_producer",
        "Write each line of standard input to a topic, as kafka-console-producer.sh.",
    ),
    Verb(
        "kafka-console-consumer",
        "wirebroker.cli.kafka.console_consumer:kafka_console_consumer",
        "Print the records of a topic, as kafka-console-consumer.sh.",
    ),
    Verb(
        "kafka-consumer-groups",
        "wirebroker.cli.kafka.groups.consumer_groups:kafka_consumer_groups",
        "List, describe and delete consumer groups, reset offsets, as kafka-consumer-groups.sh.",
    ),
    Verb(
        "kafka-share-groups",
        "wirebroker.cli.kafka.groups.share_groups:kafka_share_groups",
        "List, describe and delete share groups, reset offsets, as kafka-share-groups.sh.",
    ),
    Verb(
        "kafka-streams-groups",
        "wirebroker.cli.kafka.groups.streams_groups:kafka_streams_groups",
        "List, describe and delete streams groups, reset offsets, as kafka-streams-groups.sh.",
    ),
    Verb(
        "kafka-console-share-consumer",
        "wirebroker.cli.kafka.console_share_consumer:kafka_console_share_consumer",
        "Print the records of a topic by a share group, as kafka-console-share-consumer.sh.",
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
        "Print the contents of a partition's files, as kafka-dump-log.sh.",
    ),
    Verb(
        "kafka-producer-perf-test",
        "wirebroker.cli.kafka.producer_perf_test:kafka_producer_perf_test",
        "Measure the throughput of a producer, as kafka-producer-perf-test.sh.",
    ),
    Verb(
        "kafka-broker-api-versions",
        "wirebroker.cli.kafka.operators.broker_api_versions:kafka_broker_api_versions",
        "Print the API versions of brokers, as kafka-broker-api-versions.sh.",
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
        "kafka-client-metrics",
        "wirebroker.cli.kafka.client_metrics:kafka_client_metrics",
        "Show and change which metrics clients push, as kafka-client-metrics.sh.",
    ),
    Verb(
        "kafka-groups",
        "wirebroker.cli.kafka.groups.all_groups:kafka_groups",
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
