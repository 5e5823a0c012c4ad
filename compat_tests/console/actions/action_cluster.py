"""A cluster of three brokers of one kind, open and over SASL_SSL, with the rights of each role.

Node 101 is the controller. Listener PLAINTEXT is for stock clients, whose user may do everything;
LOGIN requires TLS and SCRAM, and its users have only the ACLs that docs/console.md lists.
"""

from __future__ import annotations

import contextlib
import re
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Final, NamedTuple

from compat_tests.cluster.nodes import FIRST_CONTROLLER, Cluster, JavaBroker, MemberBroker
from compat_tests.cluster.own_controller import OwnController
from compat_tests.console.actions.stock_client import StockClient
from tests.support.brokers.brokers import AUTHORIZED, Wirebroker
from tests.support.delivery.delivery_process import DeliveryProcess
from tests.support.harness.project_files import ROOT
from tests.support.security.tls_files import tls_configs
from tests.support.tools.ports import HOST, free_port, free_ports

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

KAFKA_PASSWORD: Final = "a-kafka-password"
# Kafka users, each with the rights of its role and of the roles before it.
KAFKA_USERS: Final = ("reader", "operator", "admin")
TEST_TOKEN: Final = "a-test-token"
_SCRAM: Final = "org.apache.kafka.common.security.scram.ScramLoginModule required"
_BROKERS: Final = (1, 2, 3)
_SETTINGS: Final = {
    **AUTHORIZED,
    "allow.everyone.if.no.acl.found": "false",
    "auto.create.topics.enable": "false",
    "offsets.topic.num.partitions": "6",
    "offsets.topic.replication.factor": "3",
    "share.coordinator.state.topic.num.partitions": "3",
    "share.coordinator.state.topic.replication.factor": "3",
    "transaction.state.log.num.partitions": "6",
    "transaction.state.log.replication.factor": "3",
    # Allows a test to write records of a transaction that no coordinator knows.
    "transaction.partition.verification.enable": "false",
}
# A row of the table in docs/console.md: role, resources, operations, purpose.
_ROW: Final = re.compile(r"^\| (\w*) ?\| ([\w, ]+) \| ([\w, ]+) \| (.*) \|$", re.MULTILINE)
_RESOURCES: Final = {
    "cluster": ("cluster", "kafka-cluster"),
    "topics": ("topic", "*"),
    "groups": ("group", "*"),
    "transactional ids": ("transactional_id", "*"),
}
_NAMES: Final = re.compile(r"`([\w.-]+)TOPIC`")


class RoleRight(NamedTuple):
    """An ACL that a role needs."""

    role: str
    resource: str
    name: str
    operation: str
    is_prefix: bool


def documented_rights() -> list[RoleRight]:
    """Return the rights that docs/console.md lists."""
    text = (ROOT / "docs" / "console.md").read_text(encoding="utf-8")
    section = text.partition("### Rights in Kafka")[2].partition("\n## ")[0]
    rights: list[RoleRight] = []
    role = ""
    for new_role, resources, operations, purpose in _ROW.findall(section):
        if new_role == "role":
            continue
        role = new_role or role
        names = _NAMES.search(purpose)
        for resource in resources.split(", "):
            kind, every = _RESOURCES[resource]
            for operation in operations.split(", "):
                word = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", operation).lower()
                name = names[1] if names else every
                rights.append(RoleRight(role, kind, name, word, names is not None))
    return rights


def login_settings(folder: Path) -> dict[str, str]:
    """Return the settings of a listener LOGIN; the folder has the CA for its clients."""
    return {
        **tls_configs(folder),
        "listener.security.protocol.map": (
            "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,LOGIN:SASL_SSL"
        ),
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
        "listener.name.login.scram-sha-512.sasl.jaas.config": f"{_SCRAM};",
    }


def console_section(name: str, bootstrap: str, folder: Path | None = None, user: str = "") -> str:
    """Return a cluster's section of a console's file; a given user logs in over SASL_SSL."""
    lines = [f"[{name}]", f"bootstrap.servers={bootstrap}"]
    if user:
        lines += [
            "security.protocol=SASL_SSL",
            "sasl.mechanism=SCRAM-SHA-512",
            f'sasl.jaas.config={_SCRAM} username="{user}" password="{KAFKA_PASSWORD}";',
            f"ssl.truststore.location={folder}/authority.pem",
            "ssl.truststore.type=PEM",
        ]
    return "\n".join(lines) + "\n"


class ActionCluster:
    """Three brokers, the stock clients of a test, and services that are started on first use.

    Attributes:
        nodes: Its processes.
        folder: Has `authority.pem`.
        stock: Stock clients with all rights.
    """

    stock: StockClient

    def __init__(self, kind: str, folder: Path) -> None:
        self.folder = folder
        self._is_apache = kind == "apache"
        self._stack = contextlib.ExitStack()
        self._logins: dict[int, int] = {}
        self._has_delivery = False
        self._test_mode: BrokerInTestMode | None = None
        settings = {**_SETTINGS, **login_settings(folder)}
        controllers = 1 if self._is_apache else 0
        self.nodes = Cluster(folder / "nodes", controllers=controllers, settings=settings)

    @property
    def bootstrap(self) -> str:
        return self.nodes.bootstrap

    @property
    def secured_bootstrap(self) -> str:
        return ",".join(f"{HOST}:{port}" for port in self._logins.values())

    def start(self) -> None:
        """Start the nodes, and create the users with their rights."""
        if not self._is_apache:
            controller = OwnController(self.nodes, FIRST_CONTROLLER)
            self.nodes.controllers[FIRST_CONTROLLER] = controller  # type: ignore[assignment]
        self.nodes.start_controllers()
        for node_id in _BROKERS:
            self._add_broker(node_id)
        with ThreadPoolExecutor(len(_BROKERS)) as threads:
            list(threads.map(lambda broker: broker.start(), self.nodes.brokers.values()))
        self.stock = StockClient(self.bootstrap)
        for index, user in enumerate(KAFKA_USERS):
            self.stock.add_user(user, KAFKA_PASSWORD)
            for right in documented_rights():
                if right.role in KAFKA_USERS[: index + 1]:
                    self._allow(user, right)

    def _add_broker(self, node_id: int) -> None:
        port, login_port = free_ports(2)
        listeners = f"PLAINTEXT://{HOST}:{port},LOGIN://{HOST}:{login_port}"
        settings = {"listeners": listeners, "advertised.listeners": listeners}
        kind = JavaBroker if self._is_apache else MemberBroker
        broker = kind(self.nodes, node_id, settings)
        broker.port = port
        self.nodes.brokers[node_id] = broker
        self._logins[node_id] = login_port

    def _allow(self, user: str, right: RoleRight) -> None:
        _, resource, name, operation, is_prefix = right
        self.stock.allow(f"User:{user}", resource, name, operation, is_prefix=is_prefix)

    def stop(self) -> None:
        self._stack.close()
        with contextlib.suppress(AttributeError):  # it did not start
            self.stock.close()
        self.nodes.stop()

    def ensure_delivery(self) -> None:
        """Run the delivery service from now on."""
        if self._has_delivery:
            return
        self._has_delivery = True
        self.stock.create_topic("deliver", {0: [1]})
        settings = {"wirebroker.delivery.targets": "t*", "wirebroker.delivery.partitions": 1}
        service = DeliveryProcess(self.bootstrap, self.folder / "delivery", settings)
        self._stack.enter_context(service)
        service.wait_until_ready()

    @property
    def test_mode(self) -> BrokerInTestMode:
        """A broker in test mode, which starts on first use."""
        if self._test_mode is None:
            broker = BrokerInTestMode(self.folder / "test-mode", login_settings(self.folder))
            self._test_mode = self._stack.enter_context(broker)
            with contextlib.closing(StockClient(broker.bootstrap)) as stock:
                stock.add_user("admin", KAFKA_PASSWORD)
        return self._test_mode


class BrokerInTestMode(Wirebroker):
    """`wirebroker serve --test-mode` with a listener LOGIN and an HTTP token."""

    login_port = 0
    http_port = 0

    def _prepare(self) -> None:
        super()._prepare()
        self.login_port, self.http_port = free_port(), free_port()
        self.settings |= {
            "listeners": f"PLAINTEXT://{HOST}:{self.port},LOGIN://{HOST}:{self.login_port}",
            "wirebroker.http.listeners": f"{HOST}:{self.http_port}",
            "wirebroker.http.token": TEST_TOKEN,
        }

    def _command(self) -> list[str]:
        return [*super()._command(), "--test-mode"]

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.http_port}"

    @property
    def secured_bootstrap(self) -> str:
        return f"{HOST}:{self.login_port}"


@contextlib.contextmanager
def running_cluster(kind: str, folder: Path) -> Iterator[ActionCluster]:
    cluster = ActionCluster(kind, folder)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.stop()
