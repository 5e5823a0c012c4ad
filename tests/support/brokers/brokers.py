"""A broker as a test sees it: wirebroker or Apache Kafka, started, killed and started again.

Both run with the same profile: one node, topics created on first use, internal topics with one
replica, groups formed without delay. A broker keeps its port over a restart, so that the clients
of a test find it again.
"""

from __future__ import annotations

import abc
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
    from collections.abc import Mapping, Sequence
    from typing import Self

START_TIMEOUT_S = 60.0  # Apache Kafka takes 4 s here, and 13 s after a kill (see ApacheKafka)
STOP_TIMEOUT_S = 30.0
_POLL_S = 0.02

# ACLs that refuse nobody who connects without a name.
AUTHORIZED = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "allow.everyone.if.no.acl.found": "true",
    "super.users": "User:ANONYMOUS",
}
# Apache Kafka's names and wirebroker's are the same; wirebroker's own profile has these already.
PROFILE = {
    "auto.create.topics.enable": "true",
    "group.initial.rebalance.delay.ms": "0",
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    # Many records of tests are years old: once, 30 s after the start, they go (but topics.KEPT).
    "log.retention.check.interval.ms": "86400000",
}


class BrokerError(Exception):
    """The broker did not start or stop; the message ends with the last lines of its log."""


class Broker(abc.ABC):
    """One broker process and its data directory.

    Args:
        directory: A folder of the broker's own: data, log and settings.
        settings: Configs beyond the common profile.
    """

    def __init__(self, directory: Path, settings: Mapping[str, str] | None = None) -> None:
        self.directory = directory
        self.settings = {**PROFILE, **(settings or {})}
        self.port = 0
        self._process: subprocess.Popen[bytes] | None = None
        self._output: IO[bytes] | None = None
        directory.mkdir(parents=True, exist_ok=True)

    @property
    def bootstrap(self) -> str:
        """The address clients connect to."""
        return f"{HOST}:{self.port}"

    @property
    def data_dir(self) -> Path:
        """The folder that holds the partitions."""
        return self.directory / "data"

    @property
    def data_dirs(self) -> list[Path]:
        """All folders that hold partitions: log.dirs, if the settings name it."""
        return [Path(each) for each in self.settings.get("log.dirs", str(self.data_dir)).split(",")]

    @property
    def log(self) -> Path:
        """The file with what the process printed, over all its starts."""
        return self.directory / "broker.log"

    @property
    def process_id(self) -> int:
        """The number of the running process."""
        assert self._process, "the broker is not running"
        return self._process.pid

    @property
    def process_ids(self) -> Sequence[int]:
        """The numbers of all its processes."""
        return [self.process_id]

    def __enter__(self) -> Self:
        """Start it; it is stopped in the end, whatever happens."""
        self.start()
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the process and return when it answers requests."""
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

    def stop(self) -> None:
        """Stop cleanly, by SIGTERM; do nothing if it is not running."""
        if self._process is None:
            return
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.kill9()
            raise self._failure(f"did not stop in {STOP_TIMEOUT_S:.0f} s") from None
        self._forget()

    def kill9(self) -> None:
        """End the process as a crash does: no handler of its own runs."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait(STOP_TIMEOUT_S)
        self._forget()

    def freeze(self) -> None:
        """Let the process do nothing (SIGSTOP): to others it is there and does not answer."""
        assert self._process, "the broker is not running"
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Let a frozen process go on, as if no time had passed."""
        assert self._process, "the broker is not running"
        self._process.send_signal(signal.SIGCONT)

    def restart(self) -> None:
        """Stop cleanly if it still runs, then start on the same port and data."""
        self.stop()
        self.start()

    @abc.abstractmethod
    def _prepare(self) -> None:
        """Write what the process needs before it starts."""

    @abc.abstractmethod
    def _command(self) -> list[str]:
        """Return the command line of the process."""

    @abc.abstractmethod
    def _is_ready(self) -> bool:
        """Say whether requests are answered; learn the port if need be."""

    def _wait_until_ready(self) -> None:
        assert self._process
        deadline = time.monotonic() + START_TIMEOUT_S
        while not self._is_ready():
            if self._process.poll() is not None:
                raise self._failure(f"ended with status {self._process.returncode}")
            if time.monotonic() > deadline:
                raise self._failure(f"not ready in {START_TIMEOUT_S:.0f} s")
            time.sleep(_POLL_S)

    def _forget(self) -> None:
        self._process = None
        if self._output:
            self._output.close()
            self._output = None

    def _failure(self, what: str) -> BrokerError:
        lines = self.log.read_text(errors="replace").splitlines()[-15:]
        return BrokerError(
            "\n".join([f"{type(self).__name__} {what}; its log {self.log}:", *lines])
        )


class Wirebroker(Broker):
    """The broker of this project, as `python -m wirebroker serve` starts it."""

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

    After a kill it comes back only when its controller has given up the old incarnation: within
    broker.session.timeout.ms, which is therefore short here. A folder that has data already, be it
    another broker's, is taken as it is.

    Args:
        directory: As of each broker.
        settings: As of each broker.
        java_options: Of its processes; those of java_start make it start quickly.

    Attributes:
        format_options: Of the storage tool, when the folder is new.
        has_dynamic_voters: Whether the voters stand in the metadata log (kraft.version 1).
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
        """Format the folders, as `kafka-storage.sh format` does; `start` does it if need be."""
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
    """A broker that someone else started; for a quick turn while writing a test."""

    def __init__(self, address: str) -> None:
        self.settings = {}
        self.port = int(address.rpartition(":")[2])

    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def kill9(self) -> None:
        raise BrokerError("this broker is not ours to kill")

    def _prepare(self) -> None:
        raise NotImplementedError

    def _command(self) -> list[str]:
        raise NotImplementedError

    def _is_ready(self) -> bool:
        return answers(self.port)


def make_broker(kind: str, directory: Path, settings: Mapping[str, str] | None = None) -> Broker:
    """Return a broker of this kind, "wirebroker" or "apache", not yet started."""
    if kind == "apache":
        return ApacheKafka(directory, settings, java_options=java_start.options())
    assert kind == "wirebroker", kind
    return Wirebroker(directory, settings)


def java_tool(heap: str, main_class: str, options: Sequence[str] = ()) -> list[str]:
    """Return the command of one of Apache Kafka's programs; its arguments follow."""
    level = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"
    java = [tools.java_command(), heap, *options, level]
    return [*java, "-cp", f"{tools.kafka_jars()}/*", main_class]


# A Metadata request, version 4, for no topics: size, key 3, version 4, correlation 1, client "?".
_METADATA = bytes.fromhex("00000010 0003 0004 00000001 0001 3f 00000000 00")


def answers(port: int) -> bool:
    """Say whether Metadata is answered with at least one broker in it."""
    try:
        with socket.create_connection((HOST, port), timeout=5) as connection:
            connection.sendall(_METADATA)
            answer = connection.recv(4096)
    except OSError:
        return False
    # size, correlation id, throttle time, then the number of brokers
    return len(answer) >= 16 and int.from_bytes(answer[12:16]) > 0


def environment_address() -> str | None:
    """Return the address in COMPAT_BROKER, of a broker that is running already, if it is set."""
    return os.environ.get("COMPAT_BROKER")
