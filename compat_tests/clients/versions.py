"""The clients in README's table and their versions, by the names that tests use."""

from __future__ import annotations

import json
import re
import subprocess
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Final

import confluent_kafka

from tests.support.tools import tools

if TYPE_CHECKING:
    from collections.abc import Callable

# The group tests' programs, which pin their clients' versions.
_PROGRAMS: Final = Path(__file__).parents[1] / "groups"


def _confluent() -> str:
    return f"{metadata.version('confluent-kafka')}, librdkafka {confluent_kafka.libversion()[0]}"


def _kcat() -> str:
    command = [*tools.kcat_command(), "-V"]
    version_text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    version, library = re.findall(r"Version (\S+).*librdkafka (\S+)", version_text)[0]
    return f"{version}, librdkafka {library}"


def _python(package: str) -> Callable[[], str]:
    return lambda: metadata.version(package)


def _node(package: str) -> Callable[[], str]:
    return lambda: str(json.loads(_text("node/package.json"))["dependencies"][package])


def _pinned(file: str, pattern: str) -> Callable[[], str]:
    def version() -> str:
        (pinned_version,) = re.findall(pattern, _text(file), re.MULTILINE)
        return str(pinned_version)

    return version


def _text(file: str) -> str:
    return (_PROGRAMS / file).read_text("utf-8")


def _kafka() -> str:
    return tools.KAFKA_VERSION


def _spark() -> str:
    from spark_it.tools.spark_tools import SPARK_VERSION

    return SPARK_VERSION


# For each client: its title in the table, and a function that returns its version; in order.
CLIENTS: Final[dict[str, tuple[str, Callable[[], str]]]] = {
    "confluent-kafka": ("confluent-kafka", _confluent),
    "kafka-python": ("kafka-python", _python("kafka-python")),
    "aiokafka": ("aiokafka", _python("aiokafka")),
    "kcat": ("kcat", _kcat),
    "java": ("Java clients and Kafka's command-line tools", _kafka),
    "kafka-streams": ("Kafka Streams", _kafka),
    "kafkajs": ("kafkajs (Node)", _node("kafkajs")),
    "platformatic-kafka": ("@platformatic/kafka (Node)", _node("@platformatic/kafka")),
    "franz-go": ("franz-go (Go)", _pinned("go/go.mod", r"/franz-go v(\S+)")),
    "sarama": ("sarama (Go)", _pinned("go/go.mod", r"/sarama v(\S+)")),
    "rust-rdkafka": ("rust-rdkafka", _pinned("rust/Cargo.toml", r'^rdkafka .*"=([0-9.]+)"')),
    "spark": ("Spark's Kafka connector", _spark),
}


def version_of(client: str) -> str:
    return CLIENTS[client][1]()
