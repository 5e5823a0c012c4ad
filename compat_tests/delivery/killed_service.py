"""Two instances of the service that are killed with their brokers; their records are counted."""

from __future__ import annotations

import contextlib
import threading
from collections import Counter
from random import Random
from typing import TYPE_CHECKING, Any, Protocol

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from compat_tests.cluster.nodes import Cluster
from tests.support.brokers.own_trio import VotingTrio
from tests.support.delivery.delivery_process import DeliveryProcess, committed_records
from tests.support.tools.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.brokers.brokers import Broker

_LONGEST_DELAY_MS = 4_000
_KILLS = 6
_PATIENCE_S = 150.0
_REPLICATED = {
    "default.replication.factor": "3",
    "offsets.topic.replication.factor": "3",
    "transaction.state.log.replication.factor": "3",
    "transaction.state.log.min.isr": "2",
    "min.insync.replicas": "2",
    "group.min.session.timeout.ms": "1000",
}
_TARGET = "orders"


class KilledNodes(Protocol):
    """A cluster of which a node can be killed."""

    @property
    def bootstrap(self) -> str:
        """The addresses of its nodes."""
        ...

    def kill(self, random: Random) -> None:
        """Kill a node and start it again."""
        ...


class OneNode:
    """A broker."""

    def __init__(self, broker: Broker) -> None:
        self._broker = broker
        self.bootstrap = broker.bootstrap

    def kill(self, _random: Random) -> None:
        self._broker.kill9()
        self._broker.start()


class ThreeNodes:
    """Brokers of a cluster.

    Each wirebroker broker is also a voter and may be the active controller.
    """

    def __init__(self, bootstrap: str, brokers: list[Broker]) -> None:
        self.bootstrap = bootstrap
        self._brokers = brokers

    def kill(self, random: Random) -> None:
        broker = random.choice(self._brokers)
        broker.kill9()
        broker.start()


@contextlib.contextmanager
def three_nodes(kind: str, folder: Path) -> Iterator[ThreeNodes]:
    """Run a cluster of three brokers of a kind."""
    if kind == "wirebroker":
        with VotingTrio(folder, _REPLICATED) as trio:
            yield ThreeNodes(trio.bootstrap, list(trio.brokers.values()))
        return
    cluster = Cluster(folder, settings=_REPLICATED)
    try:
        cluster.start_controllers()
        for node_id in (1, 2, 3):
            cluster.java_broker(node_id)
        yield ThreeNodes(cluster.bootstrap, list(cluster.brokers.values()))
    finally:
        cluster.stop()


def send_records(bootstrap: str, count: int, random: Random) -> None:
    """Send records with delays of up to four seconds; all are acknowledged."""
    producer = Producer(
        {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    )
    failures: list[object] = []

    def note(error: object, _message: object) -> None:
        if error is not None:
            failures.append(error)

    for number in range(count):
        after = str(random.randrange(_LONGEST_DELAY_MS))
        headers: Any = {"deliver-to": _TARGET, "deliver-after": after}
        producer.produce(
            "deliver", b"%d" % number, b"%d" % (number % 17), headers=headers, on_delivery=note
        )
        if number % 20 == 0:
            producer.flush(0.2)
    assert producer.flush(120) == 0
    assert not failures


def check_records(bootstrap: str, count: int) -> None:
    """Count what arrived, to the record: nothing lost, repeated or early."""
    due = {}
    for message in committed_records(bootstrap, "deliver"):
        headers = dict(message.headers())
        due[message.value()] = message.timestamp()[1] + int(headers["deliver-after"])
    delivered = committed_records(bootstrap, _TARGET)
    counts = Counter(message.value() for message in delivered)
    assert {value: n for value, n in counts.items() if n > 1} == {}
    assert set(counts) == set(due)
    assert len(due) == count
    early = [m.value() for m in delivered if m.timestamp()[1] < due[m.value()]]
    assert early == []
    assert committed_records(bootstrap, "deliver.dead-letters") == []


def run_with_kills(nodes: KilledNodes, folder: Path, count: int, seed: int) -> None:
    """Send records through two instances; kill those and nodes at random moments; count."""
    folder.mkdir(exist_ok=True)
    random = Random(seed)
    settings = {"wirebroker.delivery.session.timeout.ms": 3_000}
    instances = [
        DeliveryProcess(nodes.bootstrap, folder / name, settings) for name in ("one", "two")
    ]
    admin = AdminClient({"bootstrap.servers": nodes.bootstrap, "log_level": 0})
    admin.create_topics([NewTopic(_TARGET, 2)])[_TARGET].result(60)
    sender = threading.Thread(target=send_records, args=(nodes.bootstrap, count, Random(seed)))
    with contextlib.ExitStack() as stops:
        stops.callback(_join, sender)
        for instance in instances:
            stops.enter_context(instance)
            instance.wait_until_ready()
        sender.start()
        pause = threading.Event()
        for _ in range(_KILLS):
            pause.wait(random.uniform(0.2, 2.0))
            if random.random() < 0.3:
                nodes.kill(random)
            else:
                killed = random.choice(instances)
                killed.kill()
                pause.wait(random.uniform(0, 0.5))
                killed.start()
        sender.join()
        eventually(
            lambda: len(committed_records(nodes.bootstrap, _TARGET)) >= count,
            timeout_s=_PATIENCE_S,
            poll_s=1.0,
        )
        check_records(nodes.bootstrap, count)


def _join(sender: threading.Thread) -> None:
    if sender.ident is not None:
        sender.join()
