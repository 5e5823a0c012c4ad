"""Apache Kafka's command-line tools by the names of their scripts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from compat_tests.support.java_tools import JavaTools
from tests.support.tools import tools

if TYPE_CHECKING:
    from types import TracebackType

    from tests.support.cli.script_transcripts import Answer

_TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "kafka-topics": f"{_TOOLS}.TopicCommand",
    "kafka-console-producer": f"{_TOOLS}.ConsoleProducer",
    "kafka-console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-share-groups": f"{_TOOLS}.consumer.group.ShareGroupCommand",
    "kafka-streams-groups": f"{_TOOLS}.streams.StreamsGroupCommand",
    "kafka-console-share-consumer": f"{_TOOLS}.consumer.ConsoleShareConsumer",
    "kafka-configs": tools.CONFIG_COMMAND,
    "kafka-client-metrics": f"{_TOOLS}.ClientMetricsCommand",
    "kafka-acls": f"{_TOOLS}.AclCommand",
    "kafka-get-offsets": f"{_TOOLS}.GetOffsetShell",
    "kafka-delete-records": f"{_TOOLS}.DeleteRecordsCommand",
    "kafka-dump-log": f"{_TOOLS}.DumpLogSegments",
    "kafka-broker-api-versions": f"{_TOOLS}.BrokerApiVersionsCommand",
    "kafka-cluster": f"{_TOOLS}.ClusterTool",
    "kafka-metadata-quorum": f"{_TOOLS}.MetadataQuorumCommand",
    "kafka-features": f"{_TOOLS}.FeatureCommand",
    "kafka-log-dirs": f"{_TOOLS}.LogDirsCommand",
    "kafka-leader-election": f"{_TOOLS}.LeaderElectionCommand",
    "kafka-reassign-partitions": f"{_TOOLS}.reassign.ReassignPartitionsCommand",
    "kafka-transactions": f"{_TOOLS}.TransactionsCommand",
    "kafka-groups": f"{_TOOLS}.GroupsCommand",
    "kafka-storage": "kafka.tools.StorageTool",
    "kafka-producer-perf-test": f"{_TOOLS}.ProducerPerformance",
}


class KafkaScripts:
    """The tools' process; also a context manager that ends it."""

    def __init__(self) -> None:
        self._tools = JavaTools()

    def run(self, script: str, arguments: list[str], text: str | bytes = "") -> Answer:
        return self._tools.run(CLASSES[script], arguments, text)

    def __enter__(self) -> KafkaScripts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._tools.close()
