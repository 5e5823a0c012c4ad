"""Options of Kafka command-line tools, and whether the tools refuse their repetition.

Each row has a command and an option with its value. FILE, PLAN and others are replaced by
files of `files_in`, LOG by a segment, and BOOTSTRAP by `--bootstrap-server HOST:PORT`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path

_STRING: Final = "org.apache.kafka.common.serialization.StringDeserializer"
_FORMATTER: Final = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
_READER: Final = "org.apache.kafka.tools.LineMessageReader"
_DECODER: Final = "org.apache.kafka.tools.api.StringDecoder"
_FILES: Final = {
    "FILE": "request.timeout.ms=30000\n",
    "ADDED": "retention.ms=30000\n",
    "CSV": "orders,0,0\n",
    "BEFORE": '{"partitions": [{"topic": "orders", "partition": 0, "offset": 0}], "version": 1}',
    "MOVED": '{"topics": [{"topic": "orders"}], "version": 1}',
    "PLAN": '{"partitions": [{"topic": "orders", "partition": 0, "replicas": [1]}], "version": 1}',
    "ELECTED": '{"partitions": [{"topic": "orders", "partition": 0}]}',
}
_CONSUMER: Final = "kafka-console-consumer BOOTSTRAP --timeout-ms 500 --topic orders"
_PRODUCER: Final = "kafka-console-producer BOOTSTRAP --topic orders"
_RESET: Final = "kafka-consumer-groups BOOTSTRAP --reset-offsets --group g --topic orders"
_SHARE_RESET: Final = (
    "kafka-share-groups BOOTSTRAP --reset-offsets --group g --topic orders --dry-run"
)
_STREAMS_RESET: Final = (
    "kafka-streams-groups BOOTSTRAP --reset-offsets --group g --input-topic orders --dry-run"
)
_SHARER: Final = "kafka-console-share-consumer BOOTSTRAP --timeout-ms 100 --topic orders"
_EXECUTE: Final = "kafka-reassign-partitions BOOTSTRAP --execute --reassignment-json-file PLAN"
_ELECTION: Final = "kafka-leader-election BOOTSTRAP --election-type preferred"
_LOAD: Final = "kafka-producer-perf-test BOOTSTRAP"
# The options that each command refuses if repeated.
_REFUSED: Final = {
    "kafka-topics BOOTSTRAP --create": ["--topic twice"],
    "kafka-topics BOOTSTRAP --create --if-not-exists --topic a": [
        "--partitions 1",
        "--replication-factor 1",
        "--replica-assignment 1",
    ],
    "kafka-topics --list": ["BOOTSTRAP"],
    "kafka-topics BOOTSTRAP --list": ["--command-config FILE"],
    "kafka-topics BOOTSTRAP --describe --if-exists": ["--topic-id AAAAAAAAAAAAAAAAAAAAAA"],
    "kafka-topics BOOTSTRAP --describe --topic orders": ["--partition-size-limit-per-response 5"],
    "kafka-configs --describe --topic orders": ["BOOTSTRAP"],
    "kafka-configs BOOTSTRAP --describe --topic orders": ["--command-config FILE"],
    "kafka-configs BOOTSTRAP --alter --topic orders": [
        "--add-config retention.ms=1000",
        "--add-config-file ADDED",
    ],
    "kafka-configs BOOTSTRAP --describe": [
        "--topic orders",
        "--broker 1",
        "--broker-logger 1",
        "--user u",
        "--client u",
        "--ip 127.0.0.1",
        "--group g",
        "--client-metrics m",
    ],
    "kafka-console-producer BOOTSTRAP": ["--topic orders"],
    "kafka-console-producer --topic orders": ["BOOTSTRAP"],
    _PRODUCER: [
        "--command-config FILE",
        "--producer.config FILE",
        "--reader-config FILE",
        "--compression-codec gzip",
        "--batch-size 16384",
        f"--line-reader {_READER}",
        "--max-block-ms 60000",
        "--max-memory-bytes 33554432",
        "--max-partition-memory-bytes 16384",
        "--message-send-max-retries 3",
        "--metadata-expiry-ms 300000",
        "--request-required-acks -1",
        "--request-timeout-ms 1500",
        "--retry-backoff-ms 100",
        "--socket-buffer-size 102400",
        "--timeout 1000",
    ],
    "kafka-console-consumer --timeout-ms 500 --topic orders": ["BOOTSTRAP"],
    "kafka-console-consumer BOOTSTRAP --topic orders": ["--timeout-ms 500"],
    "kafka-console-consumer BOOTSTRAP --timeout-ms 500": ["--topic orders", "--include orders"],
    f"{_CONSUMER} --partition 0": ["--offset 0"],
    _CONSUMER: [
        "--command-config FILE",
        "--consumer.config FILE",
        f"--formatter {_FORMATTER}",
        "--formatter-config FILE",
        "--group g",
        "--isolation-level read_committed",
        f"--key-deserializer {_STRING}",
        f"--value-deserializer {_STRING}",
        "--max-messages 1",
        "--partition 0",
    ],
    "kafka-consumer-groups --list": ["BOOTSTRAP"],
    "kafka-consumer-groups BOOTSTRAP --list": [
        "--command-config FILE",
        "--state Stable",
        "--type classic",
        "--timeout 5000",
    ],
    _RESET: ["--by-duration P1D", "--shift-by 0"],
    "kafka-share-groups --list": ["BOOTSTRAP"],
    "kafka-share-groups BOOTSTRAP --list": [
        "--command-config FILE",
        "--state Stable",
        "--timeout 5000",
    ],
    "kafka-share-groups BOOTSTRAP --reset-offsets --topic orders --to-latest --dry-run": [
        "--group g"
    ],
    "kafka-streams-groups --list": ["BOOTSTRAP"],
    "kafka-streams-groups BOOTSTRAP --list": [
        "--command-config FILE",
        "--state Stable",
        "--timeout 5000",
    ],
    _STREAMS_RESET: ["--by-duration P1D"],
    "kafka-console-share-consumer --timeout-ms 100 --topic orders": ["BOOTSTRAP"],
    "kafka-console-share-consumer BOOTSTRAP --topic orders": ["--timeout-ms 100"],
    "kafka-console-share-consumer BOOTSTRAP --timeout-ms 100": ["--topic orders"],
    _SHARER: [
        "--command-config FILE",
        "--consumer-config FILE",
        f"--formatter {_FORMATTER}",
        "--formatter-config FILE",
        "--group g",
        f"--key-deserializer {_STRING}",
        f"--value-deserializer {_STRING}",
        "--max-messages 1",
    ],
    "kafka-acls --list": ["BOOTSTRAP"],
    "kafka-acls BOOTSTRAP --list": ["--command-config FILE"],
    "kafka-acls BOOTSTRAP --list --topic t": ["--resource-pattern-type literal"],
    "kafka-get-offsets": ["BOOTSTRAP"],
    "kafka-get-offsets BOOTSTRAP": [
        "--command-config FILE",
        "--topic orders",
        "--partitions 0",
        "--topic-partitions orders:0",
        "--time earliest",
    ],
    "kafka-delete-records BOOTSTRAP": ["--offset-json-file BEFORE"],
    "kafka-delete-records --offset-json-file BEFORE": ["BOOTSTRAP"],
    "kafka-delete-records BOOTSTRAP --offset-json-file BEFORE": ["--command-config FILE"],
    "kafka-log-dirs --describe": ["BOOTSTRAP"],
    "kafka-log-dirs BOOTSTRAP --describe": [
        "--command-config FILE",
        "--topic-list orders",
        "--broker-list 1",
    ],
    "kafka-reassign-partitions --list": ["BOOTSTRAP"],
    "kafka-reassign-partitions BOOTSTRAP --list": ["--command-config FILE"],
    "kafka-reassign-partitions BOOTSTRAP --generate --broker-list 1": [
        "--topics-to-move-json-file MOVED"
    ],
    "kafka-reassign-partitions BOOTSTRAP --generate --topics-to-move-json-file MOVED": [
        "--broker-list 1"
    ],
    "kafka-reassign-partitions BOOTSTRAP --execute": ["--reassignment-json-file PLAN"],
    _EXECUTE: [
        "--throttle 100000",
        "--replica-alter-log-dirs-throttle 100000",
        "--timeout 1000",
    ],
    "kafka-leader-election BOOTSTRAP --all-topic-partitions": ["--election-type preferred"],
    f"{_ELECTION} --partition 0": ["--topic orders"],
    f"{_ELECTION} --topic orders": ["--partition 0"],
    _ELECTION: ["--path-to-json-file ELECTED"],
    f"{_ELECTION} --all-topic-partitions": ["--admin.config FILE", "--command-config FILE"],
    "kafka-leader-election --election-type preferred --all-topic-partitions": ["BOOTSTRAP"],
    "kafka-client-metrics --list": ["BOOTSTRAP"],
    "kafka-client-metrics BOOTSTRAP --list": ["--command-config FILE"],
    "kafka-client-metrics BOOTSTRAP --describe": ["--name m"],
    "kafka-client-metrics BOOTSTRAP --alter --name m": ["--interval 1000"],
    "kafka-groups --list": ["BOOTSTRAP"],
    "kafka-groups BOOTSTRAP --list": [
        "--command-config FILE",
        "--group-type classic",
        "--protocol consumer",
    ],
    "kafka-broker-api-versions": ["BOOTSTRAP"],
    "kafka-broker-api-versions BOOTSTRAP": ["--command-config FILE"],
    "kafka-dump-log": ["--files LOG"],
    "kafka-dump-log --files LOG": [
        "--max-bytes 1000",
        f"--key-decoder-class {_DECODER}",
        f"--value-decoder-class {_DECODER}",
    ],
}
# Options that may be repeated: switches, and options that collect values or use one of them.
_ACCEPTED: Final = {
    "kafka-topics BOOTSTRAP": ["--list"],
    "kafka-topics BOOTSTRAP --create --if-not-exists --topic b": ["--config retention.ms=1000"],
    "kafka-topics BOOTSTRAP --describe --topic orders": ["--delete-config retention.ms"],
    "kafka-configs BOOTSTRAP --describe": ["--user-defaults", "--broker-defaults"],
    _PRODUCER: [
        "--command-property a=b",
        "--producer-property a=b",
        "--reader-property a=b",
        "--property a=b",
        "--sync",
    ],
    _CONSUMER: [
        "--command-property a=b",
        "--consumer-property a=b",
        "--formatter-property a=b",
        "--property a=b",
        "--from-beginning",
        "--skip-message-on-error",
        "--enable-systest-events",
    ],
    _RESET: [
        "--to-offset 0",
        "--to-datetime 2020-01-01T00:00:00.000",
        "--to-earliest",
    ],
    f"{_RESET} --to-earliest": ["--topic orders", "--group g"],
    "kafka-share-groups BOOTSTRAP": ["--list"],
    _SHARE_RESET: ["--to-offset 0", "--to-datetime 2020-01-01T00:00:00.000", "--to-latest"],
    f"{_SHARE_RESET} --to-earliest": ["--topic orders", "--export"],
    "kafka-share-groups BOOTSTRAP --reset-offsets --group g --dry-run": ["--from-file CSV"],
    "kafka-streams-groups BOOTSTRAP": ["--list"],
    _STREAMS_RESET: ["--to-offset 0", "--to-datetime 2020-01-01T00:00:00.000", "--to-latest"],
    f"{_STREAMS_RESET} --to-earliest": ["--input-topic orders", "--group g", "--export"],
    "kafka-streams-groups BOOTSTRAP --reset-offsets --group g --dry-run": ["--from-file CSV"],
    _SHARER: [
        "--command-property a=b",
        "--consumer-property a=b",
        "--formatter-property a=b",
        "--property a=b",
        "--reject",
        "--release",
        "--reject-message-on-error",
        "--enable-systest-events",
    ],
    "kafka-consumer-groups BOOTSTRAP --reset-offsets --group g": ["--from-file CSV"],
    "kafka-acls BOOTSTRAP --list": [
        "--topic t",
        "--group t",
        "--transactional-id t",
        "--delegation-token t",
        "--user-principal User:t",
    ],
    "kafka-acls BOOTSTRAP --list --topic t": ["--principal User:t"],
    "kafka-acls BOOTSTRAP --add --topic t": [
        "--allow-principal User:t",
        "--deny-principal User:t",
    ],
    "kafka-acls BOOTSTRAP --add --topic t --allow-principal User:t": [
        "--operation Read",
        "--allow-host 1.2.3.4",
        "--cluster",
    ],
    "kafka-acls BOOTSTRAP --add --topic t --deny-principal User:t": ["--deny-host 1.2.3.4"],
    "kafka-get-offsets BOOTSTRAP": ["--exclude-internal-topics"],
    "kafka-log-dirs BOOTSTRAP": ["--describe"],
    _EXECUTE: ["--additional", "--disallow-replication-factor-change"],
    "kafka-client-metrics BOOTSTRAP": ["--list"],
    "kafka-client-metrics BOOTSTRAP --alter --name m": ["--metrics a", "--match client_id=a"],
    "kafka-groups BOOTSTRAP --list": ["--consumer"],
    "kafka-dump-log --files LOG": ["--max-message-size 5242880", "--print-data-log"],
    "kafka-cluster cluster-id": ["BOOTSTRAP"],
    "kafka-cluster cluster-id BOOTSTRAP": ["--config FILE", "--command-config FILE"],
    "kafka-cluster list-endpoints BOOTSTRAP": ["--include-fenced-brokers"],
    "kafka-features BOOTSTRAP upgrade --dry-run": ["--metadata 4.4"],
    "kafka-features BOOTSTRAP version-mapping": ["--release-version 4.4"],
    "kafka-features BOOTSTRAP feature-dependencies": ["--feature metadata.version=30"],
    "kafka-metadata-quorum BOOTSTRAP describe": ["--status", "--replication"],
    "kafka-transactions BOOTSTRAP list": ["--duration-filter 5"],
    "kafka-transactions BOOTSTRAP describe-producers --partition 0": ["--topic orders"],
    "kafka-transactions BOOTSTRAP describe-producers --topic orders": ["--partition 0"],
    f"{_LOAD} --num-records 1 --record-size 1 --throughput -1": ["--topic orders"],
    f"{_LOAD} --topic orders --record-size 1 --throughput -1": ["--num-records 1"],
    f"{_LOAD} --topic orders --num-records 1 --throughput -1": ["--record-size 1"],
    f"{_LOAD} --topic orders --num-records 1 --record-size 1": ["--throughput -1"],
    f"{_LOAD} --topic orders --num-records 1 --record-size 1 --throughput -1": [
        "--command-property acks=all",
        "--reporting-interval 1000",
        "--command-config FILE",
    ],
}


class Repeated(NamedTuple):
    """A command, an option with its value, and whether its repetition is refused."""

    command: str
    option: str
    is_refused: bool

    @property
    def message(self) -> str:
        name = self.option.replace("BOOTSTRAP", "--bootstrap-server").split()[0].lstrip("-")
        return f"Found multiple arguments for option {name}, but you asked for only one"

    def words(self, times: int, bootstrap: str, folder: Path, segment: Path) -> list[str]:
        arguments: list[str] = []
        for word in f"{self.command}{f' {self.option}' * times}".split():
            if word == "BOOTSTRAP":
                arguments += ["--bootstrap-server", bootstrap]
            elif word in _FILES:
                arguments.append(str(folder / word))
            else:
                arguments.append(str(segment) if word == "LOG" else word)
        return arguments


REPEATED: Final = [
    Repeated(command, option, is_refused)
    for is_refused, table in ((True, _REFUSED), (False, _ACCEPTED))
    for command, options in table.items()
    for option in options
]


def files_in(folder: Path) -> None:
    for name, text in _FILES.items():
        (folder / name).write_text(text)
