"""The settings and commands of docs/controller.md form, grow and repair a quorum."""

from __future__ import annotations

import contextlib
import re
import shlex
import shutil
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

import pytest

from compat_tests.cluster.nodes import CLUSTER_ID
from tests.support.brokers import brokers
from tests.support.cli.verbs import Verbs
from tests.support.tools.ports import HOST, free_port
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE: Final = Path(__file__).resolve().parents[3] / "docs" / "controller.md"
THREE: Final = (101, 102, 103)
WAIT_S: Final = 60
PYTHON: Final = [sys.executable, "-m", "wirebroker"]


def section(title: str) -> str:
    return PAGE.read_text().partition(f"\n## {title}\n")[2].partition("\n## ")[0]


def blocks(title: str, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", section(title), re.MULTILINE | re.DOTALL)


def commands(title: str, number: int) -> list[list[str]]:
    """Return the commands of a block, without the program's name."""
    words = [shlex.split(line) for line in blocks(title, "console")[number].splitlines()]
    assert all(line[0] == "wirebroker" for line in words)
    return [line[1:] for line in words]


class Machines:
    """Three controllers of the page on this machine, and a broker.

    Attributes:
        verbs: Verbs that connect to the broker.
    """

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._folder = folder
        self._ports = {node_id: free_port() for node_id in THREE}
        self._broker_port = free_port()
        self._processes: dict[int, subprocess.Popen[bytes]] = {}
        self.verbs = Verbs(f"{HOST}:{self._broker_port}", capsys)

    def local(self, text: str) -> str:
        """Replace the page's addresses by local ones."""
        for number, port in enumerate(self._ports.values(), 1):
            text = text.replace(f"c{number}:9093", f"{HOST}:{port}")
        return text

    def folder(self, node_id: int) -> Path:
        folder = self._folder / str(node_id)
        folder.mkdir(exist_ok=True)
        return folder

    def write_settings(self, node_id: int, servers: str | None = None) -> None:
        (text,) = blocks("Three controllers", "properties")
        text = text.replace("node.id=101", f"node.id={node_id}")
        text = text.replace("CONTROLLER://c1:9093", f"CONTROLLER://c{node_id - 100}:9093")
        if servers is not None:
            text = re.sub(r"(bootstrap\.servers=).*", rf"\1{servers}", text)
            text += f"wirebroker.cluster.id={CLUSTER_ID}\n"
        text = text.replace("/var/lib/wirebroker", str(self.folder(node_id) / "data"))
        (self.folder(node_id) / "controller.properties").write_text(self.local(text))

    def run(self, node_id: int, words: list[str]) -> None:
        """Run a command of the page on a controller's machine."""
        words = [self.local(word) for word in words]
        if words[0] == "serve":
            self.serve(node_id, words)
        elif words[0] == "format":
            done = subprocess.run(
                [*PYTHON, *words], cwd=self.folder(node_id), capture_output=True, check=False
            )
            assert done.returncode == 0, done
        elif words[:2] == ["quorum", "add-voter"]:
            eventually(lambda: self._is_added(words), timeout_s=WAIT_S)
        else:
            self.verbs.do(*words)

    def serve(self, node_id: int, words: list[str]) -> None:
        with (self.folder(node_id) / "log").open("ab") as log:
            self._processes[node_id] = subprocess.Popen(
                [*PYTHON, *words], cwd=self.folder(node_id), stdout=log, stderr=log
            )

    def join(self, words: list[str]) -> None:
        """Start the broker, at a free port."""
        local = [self.local(word) for word in words]
        port = ["--port", str(self._broker_port)]
        self.serve(1, [*local[: local.index("--host")], "--host", HOST, *port])
        eventually(lambda: brokers.answers(self._broker_port), timeout_s=WAIT_S)

    def lose(self, node_id: int) -> None:
        """Kill a controller and delete its disk."""
        self._kill(node_id)
        shutil.rmtree(self.folder(node_id) / "data")

    def stop(self) -> None:
        for node_id in tuple(self._processes):
            self._kill(node_id)

    def _kill(self, node_id: int) -> None:
        process = self._processes.pop(node_id)
        process.kill()
        process.wait()

    def _is_added(self, words: list[str]) -> bool:
        added = self.verbs.run(*words)
        is_early = "does not follow" in added.err or "REQUEST_TIMED_OUT" in added.err
        assert added.status == 0 or is_early, added
        return added.status == 0


@pytest.fixture
def machines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Iterator[Machines]:
    machines = Machines(tmp_path, capsys)
    with contextlib.ExitStack() as stack:
        stack.callback(machines.stop)
        yield machines


def test_three_controllers_are_formed_and_one_is_replaced(machines: Machines) -> None:
    for node_id in THREE:
        machines.write_settings(node_id)
        for words in commands("Three controllers", 0):
            machines.run(node_id, words)
    joining, *shown = commands("Three controllers", 1)
    machines.join(joining)
    for words in shown:
        machines.run(1, [*words, "--free", "0"] if words == ["doctor"] else words)
    assert machines.verbs.json("quorum")["voters"] == [*THREE]

    machines.lose(102)
    for words in commands("Replacing a controller", 1):
        machines.run(102, words)
    assert machines.verbs.json("quorum")["voters"] == [*THREE]
    machines.verbs.do("topic", "create", "after")


def test_one_node_grows_by_joining_voters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ports = {f"node{number}:{port}": free_port() for number in (1, 2, 3) for port in (9092, 9093)}

    def local(text: str, number: int) -> str:
        for place, port in ports.items():
            text = text.replace(place, f"{HOST}:{port}")
        for port in (9092, 9093):
            text = text.replace(f"0.0.0.0:{port}", f"{HOST}:{ports[f'node{number}:{port}']}")
        return text.replace("/var/lib/wirebroker", str(tmp_path / "1"))

    (text,) = blocks("One controller", "properties")
    (tmp_path / "server.properties").write_text(local(text, 1))
    serving = commands("One controller", 0)[0]
    *joining, _ = commands("From one controller to three", 0)
    verbs = Verbs(f"{HOST}:{ports['node1:9092']}", capsys)
    with contextlib.ExitStack() as running:
        for number, words in enumerate((serving, *joining), 1):
            folder = tmp_path / f"machine-{number}"
            folder.mkdir()
            command = [local(word, number) for word in words]
            if command[0] == "join":
                command[command.index("--host") + 1] = HOST
                command[command.index("--port") + 1] = str(ports[f"node{number}:9092"])
            else:
                command[-1] = str(tmp_path / "server.properties")
            process = subprocess.Popen([*PYTHON, *command], cwd=folder)
            running.callback(process.wait)
            running.callback(process.kill)
            port = ports[f"node{number}:9092"]
            eventually(partial(brokers.answers, port), timeout_s=WAIT_S)
        eventually(lambda: verbs.json("quorum")["voters"] == [1, 2, 3], timeout_s=WAIT_S)


def test_one_controller_grows_to_three(machines: Machines) -> None:
    machines.write_settings(101, "c1:9093")
    machines.serve(101, commands("Three controllers", 0)[1])
    machines.join(commands("Three controllers", 1)[0])
    machines.verbs.do("topic", "create", "before")
    preparing, serving, *adding = commands("From one controller to three", 1)
    for node_id, words in zip(THREE[1:], adding, strict=True):
        machines.write_settings(node_id)
        for command in (preparing, serving, words):
            machines.run(node_id, command)
    quorum = machines.verbs.json("quorum")
    assert (quorum["voters"], quorum["missing_voters"]) == ([*THREE], [])
    machines.lose(101)

    def is_led_by_another() -> bool:
        result = machines.verbs.run("topic", "create", "after")
        return result.status == 0 or "exists" in result.err

    eventually(is_led_by_another, timeout_s=WAIT_S)
    listed = {line.split()[0] for line in machines.verbs.do("topic", "list").lines}
    assert {"before", "after"} <= listed
