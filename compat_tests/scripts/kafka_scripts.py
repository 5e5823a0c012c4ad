"""Apache Kafka's command-line tools, all in one Java process (java/Scripts.java)."""

from __future__ import annotations

import base64
import subprocess
from functools import cache
from typing import TYPE_CHECKING

from compat_tests import tools_go
from tests.support import java_start, tools
from tests.support.script_transcripts import Answer

if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

_SOURCES = tools.PROJECT / "compat_tests" / "scripts" / "java"
_TOOLS = "org.apache.kafka.tools"
CLASSES = {
    "kafka-topics": f"{_TOOLS}.TopicCommand",
    "kafka-console-producer": f"{_TOOLS}.ConsoleProducer",
    "kafka-console-consumer": f"{_TOOLS}.consumer.ConsoleConsumer",
    "kafka-consumer-groups": f"{_TOOLS}.consumer.group.ConsumerGroupCommand",
    "kafka-configs": "kafka.admin.ConfigCommand",
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
    """The process; as a context it ends with it."""

    def __init__(self) -> None:
        self._process = _started()

    def run(self, script: str, arguments: list[str], text: str = "") -> Answer:
        """Run a tool to its end."""
        assert self._process.stdin
        assert self._process.stdout
        fields = [CLASSES[script], text, *arguments]
        line = " ".join(f".{base64.b64encode(each.encode()).decode()}" for each in fields)
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        answered = self._process.stdout.readline().decode().split()
        if not answered:  # its parser of arguments has ended the process, and printed no output
            status = self._process.wait()
            self._process.communicate()
            self._process = _started()
            return Answer(status, "", "")
        ended, out, err = answered
        return Answer(
            int(ended), base64.b64decode(out[1:]).decode(), base64.b64decode(err[1:]).decode()
        )

    def __enter__(self) -> KafkaScripts:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self._process.kill()
        self._process.communicate()


def _started() -> subprocess.Popen[bytes]:
    command = java_start.command("-Xmx256m", "Scripts", more_classes=_classes())
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None)


@cache
def _classes() -> Path:
    """Return the folder with the compiled program."""

    def compile_into(folder: Path) -> None:
        jars = ":".join(str(jar) for jar in sorted(tools.kafka_jars().glob("*.jar")))
        files = [str(path) for path in sorted(_SOURCES.glob("*.java"))]
        tools._run([*tools.javac_command(), "-d", str(folder), "-cp", jars, *files])

    return tools._installed(f"java-scripts-{tools_go.sources_hash(_SOURCES)}", compile_into)
