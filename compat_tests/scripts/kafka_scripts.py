"""Apache Kafka's command-line tools, all in one Java process (java/Scripts.java)."""

from __future__ import annotations

import base64
import subprocess
from typing import TYPE_CHECKING

from compat_tests import java_programs
from tests.support import java_start, tools
from tests.support.script_transcripts import Answer

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
    "kafka-producer-perf-test": f"{_TOOLS}.ProducerPerformance",
}


class KafkaScripts:
    """The process; as a context it ends with it."""

    def __init__(self) -> None:
        classes = java_programs.compiled("scripts", _SOURCES)
        command = java_start.command("-Xmx256m", "Scripts", more_classes=classes)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=None
        )

    def run(self, script: str, arguments: list[str], text: str = "") -> Answer:
        """Run a tool to its end."""
        assert self._process.stdin
        assert self._process.stdout
        fields = [CLASSES[script], text, *arguments]
        line = " ".join(f".{base64.b64encode(each.encode()).decode()}" for each in fields)
        self._process.stdin.write(f"{line}\n".encode())
        self._process.stdin.flush()
        status, out, err = self._process.stdout.readline().decode().split()
        return Answer(
            int(status), base64.b64decode(out[1:]).decode(), base64.b64decode(err[1:]).decode()
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
