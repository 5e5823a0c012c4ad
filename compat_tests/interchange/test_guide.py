"""Run the settings and commands of the guide's section on moving, in order."""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from compat_tests.support.raw_requests import Requests, batch, record
from tests.support.brokers import brokers, java_start
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = pytest.mark.java

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "guide.md"
TITLE = "## Moving between Apache Kafka and wirebroker\n"
STOP_S = 60.0


def section() -> str:
    return GUIDE.read_text().partition(TITLE)[2].partition("\n## ")[0]


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section(), re.MULTILINE | re.DOTALL)


def command_of(line: str) -> list[str]:
    """Return a guide's command for this machine, where Kafka is a folder of jars."""
    program, *arguments = shlex.split(line)
    if program == "wirebroker":
        return [sys.executable, "-m", "wirebroker", *arguments]
    java = {"kafka-storage.sh": "kafka.tools.StorageTool", "kafka-server-start.sh": "kafka.Kafka"}
    return [*java_start.command("-Xmx512m", java[Path(program).name]), *arguments]


class Guide:
    """A folder in which one block's lines run; free ports replace 9092 and 9093."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port, self.controller_port = free_ports(2)
        self.appended = 0

    def text(self, text: str) -> str:
        return text.replace("9093", str(self.controller_port)).replace("9092", str(self.port))

    def run(self, lines: list[str]) -> None:
        for line in lines:
            command = command_of(line)
            if "--data-dir" in command:
                command += ["--set", f"listeners=PLAINTEXT://127.0.0.1:{self.port}"]
            if "format" in command:
                subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
                continue
            with self.serving(command):
                self.read_and_append()

    @contextlib.contextmanager
    def serving(self, command: list[str]) -> Iterator[None]:
        with (self.folder / "log").open("ab") as log:
            process = subprocess.Popen(command, cwd=self.folder, stdout=log, stderr=log)
        try:
            eventually(lambda: brokers.answers(self.port), timeout_s=brokers.START_TIMEOUT_S)
            yield
            process.terminate()
            process.wait(STOP_S)
        finally:
            process.kill()
            process.wait()

    def read_and_append(self) -> None:
        with contextlib.closing(Requests((brokers.HOST, self.port))) as requests:
            if not self.appended:
                requests.create("t", 1)
            requests.wait_for_partitions("t", 1)
            requests.wait_for_end("t", self.appended)
            assert requests.append("t", batch(record(0, b"k", b"v"))) == self.appended
            self.appended += 1


@pytest.mark.parametrize("number", [0, 1, 2])
def test_guide_commands_hand_over_the_folder(tmp_path: Path, number: int) -> None:
    guide = Guide(tmp_path)
    (properties,) = blocks("properties")
    if number == 2:
        replaced = "controller.quorum.bootstrap.servers=", "controller.quorum.voters=1@"
        assert replaced[0] in properties
        properties = properties.replace(*replaced)
    properties += "broker.session.timeout.ms=3000\nbroker.heartbeat.interval.ms=500\n"
    (tmp_path / "server.properties").write_text(guide.text(properties))
    guide.run(blocks("console")[number].splitlines())
    assert guide.appended == 3
