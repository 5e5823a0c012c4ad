"""Every stock client as a group member: its program, assignors and abilities."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from compat_tests.support import tools_go, tools_node, tools_rust
from tests.support.brokers import java_start
from tests.support.tools import java_programs, tools

if TYPE_CHECKING:
    from collections.abc import Callable

JAVA_PROGRAMS = tools.PROJECT / "compat_tests" / "groups" / "java"


@dataclass(slots=True, frozen=True)
class GroupClient:
    """One client.

    Args:
        name: Name in test ids.
        command: Returns the command line of the member program; builds its dependencies.
        assignors: All of its assignors, by Apache Kafka's names; quick tests use the first.
        broker_assignors: The broker's assignors, for clients with the consumer protocol (KIP-848).
        has_static_members: Whether it supports group.instance.id.
        commits_soon: Whether it commits consumed records promptly.
        environment: Returns the program's environment.
    """

    name: str
    command: Callable[[], list[str]]
    assignors: tuple[str, ...]
    broker_assignors: tuple[str, ...] = ()
    has_static_members: bool = True
    commits_soon: bool = True
    environment: Callable[[], dict[str, str]] = field(default=dict)

    def __str__(self) -> str:
        return self.name


@dataclass(slots=True, frozen=True)
class ShareClient:
    """A client as a member of share groups (KIP-932).

    Args:
        name: Name in test ids.
        command: Returns the command line of the member program; builds its dependencies.
        follows_recreated_topics: Whether it reads a topic that was deleted and created again.
    """

    name: str
    command: Callable[[], list[str]]
    follows_recreated_topics: bool = True

    def __str__(self) -> str:
        return self.name


def _python(module: str) -> Callable[[], list[str]]:
    return lambda: [sys.executable, "-m", f"compat_tests.groups.members.{module}"]


def java_program(main_class: str) -> list[str]:
    classes = java_programs.compiled("member", JAVA_PROGRAMS)
    return java_start.command("-Xmx128m", main_class, more_classes=classes)


CONFLUENT = GroupClient(
    "confluent-kafka",
    _python("confluent"),
    ("cooperative-sticky", "range", "roundrobin"),
    broker_assignors=("broker-uniform", "broker-range"),
)
KAFKA_PYTHON = GroupClient(
    "kafka-python",
    _python("kafka_python"),
    ("sticky", "range", "roundrobin", "cooperative-sticky"),
)
AIOKAFKA = GroupClient("aiokafka", _python("aio"), ("roundrobin", "range", "sticky"))
KCAT = GroupClient(
    "kcat", _python("kcat"), ("range", "roundrobin", "cooperative-sticky"), commits_soon=False
)
KAFKAJS = GroupClient(
    "kafkajs",
    lambda: tools_node.member_command("kafkajs"),
    ("roundrobin",),
    has_static_members=False,
    environment=tools_node.member_environment,
)
PLATFORMATIC = GroupClient(
    "platformatic-kafka",
    lambda: tools_node.member_command("platformatic"),
    ("roundrobin", "cooperative-sticky"),
    environment=tools_node.member_environment,
)
FRANZ_GO = GroupClient(
    "franz-go",
    lambda: tools_go.member_command("franz"),
    ("cooperative-sticky", "range", "roundrobin", "sticky"),
    broker_assignors=("broker-uniform", "broker-range"),
)
SARAMA = GroupClient(
    "sarama", lambda: tools_go.member_command("sarama"), ("range", "roundrobin", "sticky")
)
RUST_RDKAFKA = GroupClient(
    "rust-rdkafka", tools_rust.member_command, ("cooperative-sticky", "range", "roundrobin")
)
JAVA = GroupClient(
    "java",
    lambda: java_program("Member"),
    ("range", "cooperative-sticky", "roundrobin", "sticky"),
    broker_assignors=("broker-uniform", "broker-range"),
)

CLIENTS = (
    CONFLUENT,
    KAFKA_PYTHON,
    AIOKAFKA,
    KCAT,
    KAFKAJS,
    PLATFORMATIC,
    FRANZ_GO,
    SARAMA,
    RUST_RDKAFKA,
    JAVA,
)

SHARE_CONFLUENT = ShareClient("confluent-kafka", _python("share"))
SHARE_FRANZ_GO = ShareClient(
    "franz-go", lambda: tools_go.member_command("share"), follows_recreated_topics=False
)
SHARE_JAVA = ShareClient("java", lambda: java_program("ShareMember"))
