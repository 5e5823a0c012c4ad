"""Wirebroker and Apache Kafka as processes that tests start, kill and restart.

Both run with the same profile: one node, topics created on first use, internal topics with one
replica, no initial rebalance delay. A broker keeps its port over a restart, so that clients
reconnect.
"""

from __future__ import annotations

import abc
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, TYPE_CHECKING

from tests.support.brokers import java_start
from tests.support.tools import tools
from tests.support.tools.ports import HOST, free_port, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Self

# Apache Kafka takes 4 s here, and 13 s after a kill (see ApacheKafka).
START_TIMEOUT_S = 60.0
STOP_TIMEOUT_S = 30.0
_POLL_S = 0.02

# ACLs that allow unauthenticated clients everything.
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
# Configs of both brokers; wirebroker's defaults are mostly the same.
PROFILE = {
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Retention would delete test records with old timestamps 30 s after the start.
    "log.retention.check.interval.ms": "86400000",
}


class BrokerError(Exception):
    """The broker did not start or stop; the message ends with the last lines of its log."""


class Broker(abc.ABC):
    """One broker process and its data directory.

    Args:
        directory: Folder for data, log and settings.
        settings: Configs beyond the common profile.
    """

    stop_timeout_s = STOP_TIMEOUT_S

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.settings = {**PROFILE, **(settings or {})}
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        return f"{HOST}:{self.port}"

    @property
    def data_dir(self) -> Path:
        return self.directory / "data"

    @property
    def data_dirs(self) -> list[Path]:
        """All data directories: those of log.dirs if it is set."""
        return [Path(path) for path in self.settings.get("log.dirs", str(self.data_dir)).split(",")]

    @property
    def log(self) -> Path:
        """The file with the output of all runs."""
        return self.directory / "broker.log"

    @property
    def is_running(self) -> bool:
        """Whether the broker was started, and neither stopped nor killed since."""
        return self._process is not None

    @property
    def process_id(self) -> int:
        assert self._process, "the broker is not running"
        return self._process.pid

    @property
    def process_ids(self) -> Sequence[int]:
        return [self.process_id]

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and wait until it responds."""
        assert self._process is None, "the broker is running"
        self._prepare()
        self._output = self.log.open("ab")
        self._process = subprocess.Popen(
            self._command(), stdout=self._output, stderr=self._output, stdin=subprocess.DEVNULL
        )
        try:
            self._wait_until_ready()
        except BaseException:
            self.kill9()
            raise

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        """Stop the process with SIGTERM, if it runs."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise self._failure(f"did not stop in {timeout_s:.0f} s") from None
        self._forget()

    def kill9(self) -> None:
        """Kill the process with SIGKILL, as a crash would."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        self._forget()

    def freeze(self) -> None:
        """Suspend the process (SIGSTOP); its connections stay open."""
        assert self._process, "the broker is not running"
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        assert self._process, "the broker is not running"
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        self.stop()
        self.start()

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Write the files that the process needs."""

    @abc.abstractmethod
    def _command(self) -> list[str]:
        """Return the command line."""

    @abc.abstractmethod
    def _is_ready(self) -> bool:
        """Return whether the broker responds; read its port if necessary."""

    def _wait_until_ready(self) -> None:
        assert self._process
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None:
                raise self._failure(f"ended with status {self._process.returncode}")
            if time.monotonic() > deadline:
                raise self._failure(f"not ready in {START_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)  # a starting broker is probed

    def _forget(self) -> None:
        self._process = None
        if self._output:
            self._output.close()
            self._output = None

    def _failure(self, problem: str) -> BrokerError:
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return BrokerError(
            "\n".join([f"{type(self).__name__} {problem}; its log {self.log}:", *lines])
        )


class Wirebroker(Broker):
    """This project's broker, started by `python -m wirebroker serve`."""

    @property
    def _port_file(self) -> Path:
        return self.directory / "port"

    def _prepare(self) -> None:
        self._port_file.unlink(missing_ok=True)
        if self.port == 0:
            self.port = free_port()

    def _command(self) -> list[str]:
        serve = [sys.executable, "-m", "wirebroker", "serve", "--port", str(self.port)]
        serve += ["--port-file", str(self._port_file)]
        for name, value in {"log.dirs": str(self.data_dir), **self.settings}.items():
            serve += ["--set", f"{name}={value}"]
        return serve

    def _is_ready(self) -> bool:
        try:
            self.port = int(self._port_file.read_text())
        except FileNotFoundError:
            return False
        return answers(self.port)


class ApacheKafka(Broker):
    """Apache Kafka as broker and controller in one process, formatted on first start.

    After a kill it is ready only when its controller has fenced the old incarnation, so
    broker.session.timeout.ms is short. Existing data is kept, even another broker's.

    Args:
        directory: See Broker.
        settings: See Broker.
        java_options: Options of its JVMs, such as those of java_start.

    Attributes:
        format_options: Options of the storage tool for a new folder.
        has_dynamic_voters: Whether the metadata log stores the voters (kraft.version 1).
    """

    _CLUSTER_ID = "MkU3OEVBNTcwNTJENDM2Qk"

    def __init__(
        self,
        directory: Path,
        settings: Mapping[str, str] | None = None,
        *,
        java_options: Sequence[str] = (),
    ) -> None:
        super().__init__(directory, settings)
        self.java_options = java_options
        self.format_options: list[str] = []
        self.has_dynamic_voters = False

    @property
    def _properties(self) -> Path:
        return self.directory / "server.properties"

    def _prepare(self) -> None:
        if self.port == 0:
            self._choose_ports()
        if not (self.data_dirs[0] / "meta.properties").exists():
            self.format()

    def _choose_ports(self) -> None:
        self.port, controller_port = free_ports(2)
        settings = {
            "process.roles": "broker,controller",
            "node.id": "1",
            "listeners": f"PLAINTEXT://{HOST}:{self.port},CONTROLLER://{HOST}:{controller_port}",
            "advertised.listeners": f"PLAINTEXT://{HOST}:{self.port}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": str(self.data_dir),
            "broker.session.timeout.ms": "3000",
            "broker.heartbeat.interval.ms": "500",
            **self.settings,
        }
        if self.has_dynamic_voters:
            settings["controller.quorum.bootstrap.servers"] = f"{HOST}:{controller_port}"
        else:
            settings["controller.quorum.voters"] = f"1@{HOST}:{controller_port}"
        lines = (f"{name}={value}\n" for name, value in settings.items())
        self._properties.write_text("".join(lines))

    def format(self) -> None:
        """Format the folders with `kafka-storage.sh format`; `start` calls this for new folders."""
        if self.port == 0:
            self._choose_ports()
        tool = java_tool("-Xmx128m", "kafka.tools.StorageTool", self.java_options)
        tool += ["format", "-t", self._CLUSTER_ID, "-c", str(self._properties)]
        tool += self.format_options
        if self.has_dynamic_voters:
            tool.append("--standalone")
        done = subprocess.run(tool, capture_output=True, text=True, check=False)
        if done.returncode:
            raise BrokerError(f"Apache Kafka's storage tool failed: {done.stdout}{done.stderr}")

    def _command(self) -> list[str]:
        tool = java_tool("-Xmx512m", "kafka.Kafka", self.java_options)
        return [*tool, str(self._properties)]

    def _is_ready(self) -> bool:
        return answers(self.port)


class RunningBroker(Broker):
    """A broker that was started elsewhere."""

    def __init__(self, address: str) -> None:
        self.settings = {}
        self.port = int(address.rpartition(":")[2])

    def start(self) -> None:
        pass

    def stop(self, *, timeout_s: float = STOP_TIMEOUT_S) -> None:
        del timeout_s

    def kill9(self) -> None:
        raise BrokerError("this broker is not ours to kill")

    def _prepare(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _is_ready(self) -> bool:
        return answers(self.port)


def make_broker(kind: str, directory: Path, settings: Mapping[str, str] | None = None) -> Broker:
    """Return a broker of kind "wirebroker" or "apache", not started."""
    if kind == "apache":
        return ApacheKafka(directory, settings, java_options=java_start.options())
    assert kind == "wirebroker", kind
    return Wirebroker(directory, settings)


def java_tool(heap: str, main_class: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command of an Apache Kafka program, without arguments."""
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    java = [tools.java_command(), heap, *options, level]
    return [*java, "-cp", f"{tools.kafka_jars()}/*", main_class]


# A Metadata request, version 4, for no topics: size, key 3, version 4, correlation 1, client "?".
_METADATA = bytes.fromhex("00000010 0003 0004 00000001 0001 3f 00000000 00")


def answers(port: int) -> bool:
    """Return whether the broker responds to Metadata with at least one broker."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(_METADATA)
            answer = connection.recv(4096)
    except OSError:
        return False
    # size, correlation id, throttle time, then the number of brokers
    return len(answer) >= 16 and int.from_bytes(answer[12:16]) > 0


@contextlib.contextmanager
def broker_under_test(
    kind: str, directory: Path, settings: Mapping[str, str] | None = None
) -> Iterator[Broker]:
    """Run a broker, or use the running one that COMPAT_BROKER names."""
    address = os.environ.get("COMPAT_BROKER")
    if address:
        yield RunningBroker(address)
        return
    with make_broker(kind, directory, settings) as running:
        yield running
