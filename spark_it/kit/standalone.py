"""Spark's standalone master and one worker, whose executors a test may kill."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from typing import IO, TYPE_CHECKING

from spark_it.kit import faulty_runs
from spark_it.tools import session, spark_tools
from spark_it.tools.session import HOST
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from pathlib import Path

_START_S = 120.0
_STOP_S = 30.0
_CLASSES = "org.apache.spark.deploy"
_OPTIONS = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Dspark.master.rest.enabled=false"


class StandaloneSpark:
    """A master and a worker, each a Java process, with output in `FOLDER/*.log`."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._port, self._master_pages, self._worker_pages = free_ports(3)
        self._processes: list[subprocess.Popen[bytes]] = []
        self._logs: list[IO[bytes]] = []

    @property
    def address(self) -> str:
        return f"spark://{HOST}:{self._port}"

    def start(self) -> None:
        host_option = ("--host", HOST)
        pages = ("--webui-port", str(self._master_pages))
        self._run("master.Master", *host_option, "--port", str(self._port), *pages)
        eventually(self._listens, timeout_s=_START_S)
        worker_options = (
            "--cores",
            "2",
            "--memory",
            "1g",
            "--work-dir",
            str(self._folder / "work"),
        )
        pages = ("--webui-port", str(self._worker_pages))
        self._run("worker.Worker", *host_option, *worker_options, *pages, self.address)

    def kill_executors(self) -> int:
        worker = self._processes[1].pid
        return faulty_runs.kill_all(list(faulty_runs.children_of(worker)))

    def stop(self) -> None:
        for process in reversed(self._processes):
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_S)
        for log in self._logs:
            log.close()

    def settings(self, folder: Path) -> dict[str, str]:
        return {
            **session.settings_for(folder),
            "spark.master": self.address,
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": "-XX:+UseSerialGC -XX:TieredStopAtLevel=1",
        }

    def _run(self, name: str, *arguments: str) -> None:
        home = spark_tools.pyspark_folder() / "pyspark"
        variables = {"SPARK_HOME": str(home), "SPARK_DAEMON_MEMORY": "256m"}
        log = (self._folder / f"{name}.log").open("ab")
        self._logs.append(log)
        self._processes.append(
            subprocess.Popen(
                [str(home / "bin" / "spark-class"), f"{_CLASSES}.{name}", *arguments],
                env={
                    **os.environ,
                    **session.environment(),
                    **variables,
                    "SPARK_DAEMON_JAVA_OPTS": _OPTIONS,
                },
                stdout=log,
                stderr=log,
            )
        )

    def _listens(self) -> bool:
        with socket.socket() as connection:
            return connection.connect_ex((HOST, self._port)) == 0
