"""The guide's commands work as written, on orders of a day."""

from __future__ import annotations

import datetime
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from spark_it.tools import session, spark_tools
from tests.support.tools.ports import free_port
from wirebroker.base.clock import SystemClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyspark.sql import SparkSession

pytestmark = [pytest.mark.nightly, pytest.mark.java]

GUIDE = Path(__file__).parents[1] / "README.md"
CITIES = ("Oslo", "Rome", "Lima")
# Beginnings of commands that do not run here, with reasons.
NOT_RUN = {
    "pip install": "PySpark and what goes with it are 400 MB",
    ".venv/bin/python -m pytest spark_it": "this is one of its tests",
    "make spark-suite": "minutes; test_sparks_own_suites.py runs what it does",
}
SERVE = "wirebroker serve --data-dir data &"
COMMAND_S = 240


def blocks(language: str) -> list[str]:
    """Return the guide's fenced blocks of a language."""
    # Every other piece is a block; its first line is the language.
    pieces = re.split(r"^```", GUIDE.read_text(encoding="utf-8"), flags=re.MULTILINE)[1::2]
    return [
        text for name, _, text in (piece.partition("\n") for piece in pieces) if name == language
    ]


def commands() -> list[str]:
    words = ("pip ", "wirebroker ", "python ", "make ", ".venv/bin/")
    lines = (line for block in blocks("") for line in block.splitlines())
    return [line.partition("#")[0].strip() for line in lines if line.startswith(words)]


def write_orders(folder: Path) -> None:
    folder.mkdir()
    # Recent, so that retention keeps the records.
    today = datetime.datetime.fromtimestamp(SystemClock().now_ms() / 1000, datetime.UTC).date()
    day = today - datetime.timedelta(days=2)
    for hour in range(24):
        orders = [
            {
                "id": hour * 120 + number,
                "at": f"{day}T{hour:02}:{number // 2:02}:{number % 2 * 30:02}Z",
                "city": CITIES[number % 3],
                "price": "2.50",
            }
            for number in range(120)
        ]
        lines = "".join(f"{json.dumps(order)}\n" for order in orders)
        (folder / f"{hour:02}.jsonl").write_text(lines, encoding="utf-8")


class Newcomer:
    """Runner of commands in a folder, with a free port instead of the guide's."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port = str(free_port())
        address = f"127.0.0.1:{self._port}"
        self._environment = {
            **os.environ,
            **session.environment(),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "KAFKA_LISTENERS": f"PLAINTEXT://{address}",
            "WIREBROKER_BOOTSTRAP": address,
            "WIREBROKER_COMPILE": "0",
            "SPARK_CONF_DIR": str(folder / "conf"),
        }
        (folder / "conf").mkdir()
        settings = session.settings_for(folder) | {"spark.master": "local[2]"}
        settings.pop("spark.jars")  # set by the jobs
        (folder / "conf" / "spark-defaults.conf").write_text(
            "".join(f"{name} {value}\n" for name, value in settings.items()), encoding="utf-8"
        )
        self._broker: subprocess.Popen[str] | None = None

    def at_its_port(self, text: str) -> str:
        return text.replace("9092", self._port)

    def write(self, name: str, text: str) -> None:
        (self._folder / name).write_text(self.at_its_port(text), encoding="utf-8")

    def types(self, command: str, **variables: str) -> str:
        """Run a command, which must succeed; return its output."""
        command = self.at_its_port(command).replace("/var/lib/kafka/data", "data")
        done = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", command],
            cwd=self._folder,
            env=self._environment | variables,
            capture_output=True,
            text=True,
            timeout=COMMAND_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}\n{done.stderr[-4000:]}"
        return done.stdout

    def serves(self, command: str) -> None:
        self._broker = subprocess.Popen(
            ["bash", "-c", f"exec {command.removesuffix('&')}"],
            cwd=self._folder,
            env=self._environment,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._broker.stdout is not None
        assert any(line.startswith("wirebroker ready on ") for line in self._broker.stdout)

    def leaves(self) -> None:
        if self._broker is not None:
            self._broker.send_signal(signal.SIGTERM)
            self._broker.communicate(timeout=30)
            assert self._broker.returncode == 0


@pytest.fixture
def newcomer(tmp_path: Path) -> Iterator[Newcomer]:
    new_user = Newcomer(tmp_path)
    yield new_user
    new_user.leaves()


@pytest.mark.timeout(1200)  # commands have their own limits, and start Java
def test_guide_commands_work(newcomer: Newcomer, tmp_path: Path) -> None:
    orders, sales = blocks("toml")[:2]
    newcomer.write("orders.toml", orders)
    jars = session.settings_for(tmp_path)["spark.jars"]
    newcomer.write("sales.toml", f'{sales}[spark]\n"spark.jars" = "{jars}"\n')
    write_orders(tmp_path / "in")
    outputs: dict[str, str] = {}
    for command in commands():
        if command == SERVE:
            newcomer.serves(command)
        elif not command.startswith(tuple(NOT_RUN)):
            outputs[command] = newcomer.types(command)
    command_by_name = {
        command.split()[2 if command.startswith("wire") else 3]: command for command in outputs
    }
    assert list(command_by_name) == [
        "ingest",
        "quality",
        "windows",
        "--from-beginning",
        "archive",
        "restore",
    ]
    assert "batches 1, records 2880, dead_letters 0," in outputs[command_by_name["ingest"]]
    assert (tmp_path / "quality.svg").read_text(encoding="utf-8").startswith("<svg")
    # Rows of the last hour wait for later ones.
    windows = [
        json.loads(line) for line in outputs[command_by_name["--from-beginning"]].splitlines()
    ]
    assert len(windows) == 23 * 3
    assert {(window["orders"], window["total"]) for window in windows} == {(40, 100.0)}
    assert {window["city"] for window in windows} == set(CITIES)
    assert outputs[command_by_name["quality"]].startswith("orders: 2880 records, skew ")
    (drawing,) = (block for block in blocks("python") if "savefig" in block)
    newcomer.write("draw.py", drawing)
    path = os.pathsep.join([*session.python_folders(), *spark_tools.plot_folders()])
    newcomer.types("python draw.py", PYTHONPATH=path, MPLBACKEND="svg")
    picture = (tmp_path / "sales.svg").read_text(encoding="utf-8")
    assert all(f"<!-- {city} -->" in picture for city in CITIES)
    assert "2880 records archived" in outputs[command_by_name["archive"]]
    assert sorted(path.name for path in (tmp_path / "restored").iterdir()) == [
        f"orders-{number}"
        for number in (0, 1, 2)
        if f"orders-{number}:" in outputs[command_by_name["restore"]]
    ]


def test_skipped_commands_are_in_the_guide() -> None:
    assert SERVE in commands()
    assert all(any(command.startswith(name) for command in commands()) for name in NOT_RUN)
    assert len(commands()) >= 12


def test_guide_table_example_shows_rows(
    spark: SparkSession, newcomer: Newcomer, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    newcomer.serves(SERVE)
    newcomer.types("echo first | wirebroker produce orders")
    (table,) = (block for block in blocks("python") if "SegmentDataSource" in block)
    exec(table.replace("/var/lib/kafka/data", str(tmp_path / "data")), {"spark": spark})
    assert "|first|" in capsys.readouterr().out


def test_guide_exactly_once_query_sends_rows(
    spark: SparkSession, newcomer: Newcomer, tmp_path: Path
) -> None:
    newcomer.serves(SERVE)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "sales.txt").write_text("first\nsecond\n", encoding="utf-8")
    (program,) = (block for block in blocks("python") if "exactly_once" in block)
    names: dict[str, Any] = {"sales": spark.readStream.format("text").load(str(tmp_path / "in"))}
    exec(newcomer.at_its_port(program).replace("own-", f"{tmp_path}/own-"), names)
    names["query"].processAllAvailable()
    names["query"].stop()
    names["send"].close()
    output = newcomer.types("wirebroker consume --from-beginning --exit sales")
    assert sorted(output.splitlines()) == ["first", "second"]
