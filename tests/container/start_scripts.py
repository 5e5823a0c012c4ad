"""The image's scripts in a separate folder, started as in a container, without an engine.

Describes how each Kafka class of testcontainers starts an image: the variables that it sets, the
start script that it writes, and the line that it waits for.
Source: testcontainers-python 4.15, testcontainers-kafka 2.0.2 (Java), testcontainers-go 0.40,
@testcontainers/kafka 12 (Node).
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tests.support.harness.project_files import ROOT
from tests.support.tools.ports import free_ports
from tests.support.tools.waiting import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

IMAGE = ROOT / "deploy" / "container"
READY = "Transitioning from RECOVERY to RUNNING"
CLUSTER_ID = "4L6g3nShT-eMCtK--X86sw"


class Harness(NamedTuple):
    """How one class starts an image.

    Attributes:
        name: Language and class.
        has_controller: Whether it opens a CONTROLLER listener.
        variables: Other variables that it sets.
        script: The start script; {advertised} is replaced when the ports are known.
        waits_for: The pattern that it searches for in the log.
        interpreter: The interpreter of the script.
    """

    name: str
    has_controller: bool
    variables: dict[str, str]
    script: str
    waits_for: str
    interpreter: str = "bash"


_CONTROLLER = {
    "KAFKA_NODE_ID": "1",
    "KAFKA_PROCESS_ROLES": "broker,controller",
    "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
}
_FORMAT = "echo 'kafka-storage format --ignore-formatted {what} -c /etc/kafka/kafka.properties'"
_WITHOUT_ZOOKEEPER = "sed -i '/KAFKA_ZOOKEEPER_CONNECT/d' /etc/confluent/docker/configure\n"
_ADVERTISE = "export KAFKA_ADVERTISED_LISTENERS={advertised}\n"
_STEP_BY_STEP = (
    ". /etc/confluent/docker/bash-config\n/etc/confluent/docker/configure\n"
    "/etc/confluent/docker/launch\n"
)

HARNESSES = (
    Harness(
        "python, ZooKeeper",
        has_controller=False,
        variables={},
        script="echo 'clientPort=2181' > zookeeper.properties\n"
        "zookeeper-server-start zookeeper.properties &\n"
        "export KAFKA_ZOOKEEPER_CONNECT='localhost:2181'\n" + _ADVERTISE + _STEP_BY_STEP,
        waits_for=r".*\[KafkaServer id=\d+\] started.*",
        interpreter="sh",
    ),
    Harness(
        "python, KRaft",
        has_controller=True,
        variables=_CONTROLLER | {"CLUSTER_ID": CLUSTER_ID},
        script=_WITHOUT_ZOOKEEPER
        + _FORMAT.format(what=f"-t {CLUSTER_ID}")
        + " >> /etc/confluent/docker/configure\n"
        + _ADVERTISE
        + _STEP_BY_STEP,
        waits_for=".*Kafka Server started.*",
        interpreter="sh",
    ),
    Harness(
        "java, KafkaContainer",
        has_controller=True,
        variables=_CONTROLLER | {"CLUSTER_ID": CLUSTER_ID},
        script=_ADVERTISE + "/etc/kafka/docker/run\n",
        waits_for=".*Transitioning from RECOVERY to RUNNING.*",
    ),
    Harness(
        "go",
        has_controller=True,
        variables=_CONTROLLER | {"KAFKA_REST_BOOTSTRAP_SERVERS": "PLAINTEXT://0.0.0.0:9093"},
        script="source /etc/confluent/docker/bash-config\n"
        + _ADVERTISE
        + _WITHOUT_ZOOKEEPER
        + _FORMAT.format(what='-t "$(kafka-storage random-uuid)"')
        + " >> /etc/confluent/docker/configure\n"
        "echo '' > /etc/confluent/docker/ensure\n"
        "/etc/confluent/docker/configure\n/etc/confluent/docker/launch",
        waits_for=".*Transitioning from RECOVERY to RUNNING.*",
    ),
    Harness(
        "node, ZooKeeper",
        has_controller=False,
        variables={
            "KAFKA_ZOOKEEPER_CONNECT": "localhost:2181",
            "KAFKA_CONFLUENT_SUPPORT_METRICS_ENABLE": "false",
        },
        script=_ADVERTISE + "echo '' > /etc/confluent/docker/ensure \n"
        "zookeeper-server-start zookeeper.properties &\n/etc/confluent/docker/run \n",
        waits_for="wirebroker ready on",  # it waits for the port
    ),
)


class StartedContainer:
    """The running scripts.

    Attributes:
        folder: The container's root folder.
        log: The output so far.
        bootstrap: The address for clients.
    """

    def __init__(self, folder: Path, bootstrap: str, environment: dict[str, str]) -> None:
        self.folder = folder
        self.log = ""
        self.bootstrap = bootstrap
        self.environment = environment

    def run(self, *command: str) -> subprocess.CompletedProcess[str]:
        """Run a program in it, as `docker exec` does."""
        return subprocess.run(
            [self.folder / command[0].lstrip("/"), *command[1:]],
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )


def image_at(folder: Path) -> Path:
    """Lay out the files of the image as its Containerfile does."""
    shutil.copytree(IMAGE / "docker", folder / "etc" / "kafka" / "docker")
    shutil.copytree(IMAGE / "bin", folder / "usr" / "local" / "bin")
    (folder / "etc" / "confluent").symlink_to("kafka")
    (folder / "work").mkdir()
    return folder


def environment_of(folder: Path, variables: Mapping[str, str]) -> dict[str, str]:
    """Return what a container's processes have as environment."""
    path = [folder / "usr" / "local" / "bin", Path(sys.executable).parent, os.environ["PATH"]]
    return {
        "PATH": os.pathsep.join(map(str, path)),
        "PYTHONPATH": str(ROOT),
        "WIREBROKER_READY_WORDS": "kafka",
        "WIREBROKER_MOUNTED_PROPERTIES": str(folder / "mounted.properties"),
        "KAFKA_LOG_DIRS": str(folder / "data"),
        **variables,
    }


@contextlib.contextmanager
def started_by(harness: Harness, folder: Path) -> Iterator[StartedContainer]:
    """Start the image as that class does; give it when the line has come; stop it in the end."""
    client, broker, controller, http = free_ports(4)
    listeners = [f"PLAINTEXT://127.0.0.1:{client}", f"BROKER://127.0.0.1:{broker}"]
    protocols = "BROKER:PLAINTEXT,PLAINTEXT:PLAINTEXT"
    variables = {
        "KAFKA_BROKER_ID": "1",
        "KAFKA_INTER_BROKER_LISTENER_NAME": "BROKER",
        "KAFKA_OFFSETS_TOPIC_NUM_PARTITIONS": "1",
        "KAFKA_LOG_FLUSH_INTERVAL_MESSAGES": "9223372036854775807",
        "KAFKA_WIREBROKER_HTTP_LISTENERS": f"127.0.0.1:{http}",
    }
    if harness.has_controller:
        listeners.append(f"CONTROLLER://127.0.0.1:{controller}")
        protocols += ",CONTROLLER:PLAINTEXT"
        variables["KAFKA_CONTROLLER_QUORUM_VOTERS"] = f"1@localhost:{controller}"
    variables["KAFKA_LISTENERS"] = ",".join(listeners)
    variables["KAFKA_LISTENER_SECURITY_PROTOCOL_MAP"] = protocols
    advertised = f"PLAINTEXT://localhost:{client},BROKER://127.0.0.1:{broker}"
    script = harness.script.format(advertised=advertised).replace("/etc/", f"{folder}/etc/")
    environment = environment_of(folder, variables | harness.variables)
    container = StartedContainer(folder, f"127.0.0.1:{client}", environment)
    with running(container, [harness.interpreter, "-c", script], harness.waits_for):
        yield container


@contextlib.contextmanager
def running(container: StartedContainer, command: list[str], waits_for: str) -> Iterator[None]:
    """Run a command in it until the block ends, once a line matches."""
    with subprocess.Popen(
        command,
        cwd=container.folder / "work",
        env=container.environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,  # a container ends with all of its processes
    ) as process:
        assert process.stdout is not None
        timer = threading.Timer(PATIENCE_S, os.killpg, (process.pid, signal.SIGKILL))
        timer.start()
        try:
            # As the classes do: the log is searched again whenever there is more of it.
            while not re.search(waits_for, container.log):
                line = process.stdout.readline()
                assert line, f"it has ended:\n{container.log}"
                container.log += line
            yield
        finally:
            timer.cancel()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGTERM)
            container.log += process.stdout.read()
