"""Apache Kafka's command-line tools, all in one Java process (java/Scripts.java)."""

from __future__ import annotations

import base64
import subprocess
from typing import TYPE_CHECKING

from compat_tests.support import java_programs
from tests.support.brokers import java_start
from tests.support.cli.script_transcripts import Answer
from tests.support.tools import tools

if TYPE_CHECKING:
    from types import TracebackType

_SOURCES = tools.PROJECT / "compat_tests" / "scripts" / "java"
_TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "kafka-topics": f"{_TOOLS}.TopicCommand",
    "kafka-console-producer": f"{_TOOLS}.ConsoleProducer",
    "kafka-console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-configs": tools.CONFIG_COMMAND,
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
    """The process; also a context manager that ends it."""

    def __init__(self) -> None:
        self._process = _started()

    def run(self, script: str, arguments: list[str], text: str | bytes = "") -> Answer:
        assert self._process.stdin
        assert self._process.stdout
        fields = [CLASSES[script], text, *arguments]
        encoded = [field if isinstance(field, bytes) else field.encode() for field in fields]
        line = " ".join(f".{base64.b64encode(field_bytes).decode()}" for field_bytes in encoded)
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        response = self._process.stdout.readline().decode().split()
        if not response:  # the argument parser has ended the process without output
            status = self._process.wait()
            self._process.communicate()
            self._process = _started()
            return Answer(status, "", "")
        status_text, out, err = response
        return Answer(
            int(status_text),
            base64.b64decode(out[1:]).decode(errors="replace"),
            base64.b64decode(err[1:]).decode(),
        )

    def __enter__(self) -> KafkaScripts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def _started() -> subprocess.Popen[bytes]:
    classes = java_programs.compiled("scripts", _SOURCES)
    command = java_start.command("-Xmx256m", "Scripts", more_classes=classes)
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)
