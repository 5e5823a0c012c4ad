"""Java, Go and Node schedule and retry records with headers alone, as docs/delivery.md shows."""

from __future__ import annotations

import os
import re
import subprocess
from textwrap import dedent
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.support import tools_go, tools_node
from tests.support.brokers import java_start
from tests.support.brokers.brokers import make_broker
from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.tools import java_programs, tools
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

_PATIENCE_S = 90.0
_PROGRAMS = tools.PROJECT / "compat_tests" / "delivery" / "clients"
_PAGE = tools.PROJECT / "docs" / "delivery.md"
_TARGETS = ("orders", "orders.retry.billing")


class HeaderClient(NamedTuple):
    """A client: how its program is run, its source, and the language of its block on the page."""

    command: Callable[[], list[str]]
    source: Path
    language: str


def _java() -> list[str]:
    classes = java_programs.compiled("delivery", _PROGRAMS / "java")
    return java_start.command("-Xmx128m", "Later", more_classes=classes)


CLIENTS = {
    "java": HeaderClient(_java, _PROGRAMS / "java" / "Later.java", "java"),
    "franz-go": HeaderClient(
        lambda: tools_go.delivery_command("later"), _PROGRAMS / "go" / "later" / "main.go", "go"
    ),
    "kafkajs": HeaderClient(
        lambda: [tools_node.node_command(), str(_PROGRAMS / "node" / "later.cjs")],
        _PROGRAMS / "node" / "later.cjs",
        "js",
    ),
}
EACH_CLIENT = pytest.mark.parametrize(
    "client",
    [pytest.param(name, marks=pytest.mark.java) if name == "java" else name for name in CLIENTS],
)


@pytest.fixture(scope="module")
def served(broker_kind: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker with the service, whose topics have the names of the page."""
    folder = tmp_path_factory.mktemp("served")
    with make_broker(broker_kind, folder / "broker") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0})
        made = admin.create_topics([NewTopic(topic, 2, 1) for topic in _TARGETS])
        for topic in made.values():
            topic.result(60)
        with DeliveryProcess(broker.bootstrap, folder / "instance") as service:
            service.wait_until_ready()
            yield broker


def arrived(broker: Broker, topic: str, count: int) -> list[Any]:
    records: list[Any] = []

    def has_all() -> bool:
        records[:] = committed_records(broker.bootstrap, topic)
        return len(records) >= count

    eventually(has_all, timeout_s=_PATIENCE_S, poll_s=0.3)
    assert len(records) == count
    return sorted(records, key=lambda record: record.timestamp())


@EACH_CLIENT
def test_a_client_schedules_and_retries_with_headers_alone(served: Broker, client: str) -> None:
    before = [len(committed_records(served.bootstrap, topic)) for topic in _TARGETS]
    subprocess.run(
        [*CLIENTS[client].command(), served.bootstrap],
        env={**os.environ, **(tools_node.member_environment() if client == "kafkajs" else {})},
        check=True,
        timeout=_PATIENCE_S,
    )
    for topic, count, value, pause_ms in zip(
        _TARGETS, before, (b"a book", b"a pen"), (2_000, 1_000), strict=True
    ):
        last = arrived(served, topic, count + 1)[-1]
        headers = dict(last.headers())
        assert (last.key(), last.value()) == (b"customer-7", value)
        assert last.timestamp()[1] >= int(headers["deliver-original-timestamp"]) + pause_ms
        assert "deliver-to" not in headers
    assert headers["retry-attempt"] == b"1"


@pytest.mark.parametrize("client", CLIENTS)
def test_the_page_shows_lines_of_the_program(client: str) -> None:
    _, source, language = CLIENTS[client]
    blocks = re.findall(rf"```{language}\n(.*?)```", _PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert blocks
    program = [line.strip() for line in source.read_text(encoding="utf-8").splitlines()]
    lines = [line.strip() for block in blocks for line in dedent(block).splitlines() if line]
    assert [line for line in lines if line not in program] == []
