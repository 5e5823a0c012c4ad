"""Each worker's settings: node ids, ports, folders, replicas of the internal topics."""

from __future__ import annotations

import os
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.broker.workers.orders import Ports, WorkerConfig, WorkerConfigs
from wirebroker.config import Config, StartError
from wirebroker.config.listeners.listeners import controller_listeners_of, to_controllers
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.config.sources.sources import load_config

if TYPE_CHECKING:
    from pathlib import Path


class ScriptedPorts:
    def __init__(self, *taken: int) -> None:
        self.taken = set(taken)
        self._next = 40_000

    def is_free(self, host: str, port: int) -> bool:
        assert "[" not in host
        return port not in self.taken

    def any_free(self, host: str) -> int:
        del host
        self._next += 1
        return self._next - 1


def orders_of(
    data: Path,
    count: int,
    *taken: int,
    port: int | None = None,
    ports: Ports | None = None,
    **settings: str,
) -> list[WorkerConfig]:
    flags = {name.replace("_", "."): value for name, value in settings.items()}
    arguments: dict[str, Any] = {
        "file": None,
        "environment": {},
        "flags": flags,
        "data_directory": str(data),
        "port": port,
    }
    orders = WorkerConfigs(
        load_config(**arguments),
        load_config(**arguments, is_one_node=False),
        count=count,
        flags=flags,
        file=None,
        data_directory=str(data),
        ports=ports or ScriptedPorts(*taken),
    )
    return [orders.first(), *(orders.member(worker) for worker in range(2, count + 1))]


def listeners(orders: list[WorkerConfig]) -> list[str]:
    return [order.flags["listeners"] for order in orders]


def test_workers_get_consecutive_node_ids_and_ports(tmp_path):
    orders = orders_of(tmp_path, 3, node_id="5")
    assert [order.node_id for order in orders] == [5, 6, 7]
    assert [order.flags["node.id"] for order in orders] == ["5", "6", "7"]
    assert listeners(orders) == [
        "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9095",
        "PLAINTEXT://127.0.0.1:9093",
        "PLAINTEXT://127.0.0.1:9094",
    ]
    assert [order.flags["process.roles"] for order in orders] == [
        "broker,controller",
        "broker",
        "broker",
    ]
    controllers = {order.flags["controller.quorum.bootstrap.servers"] for order in orders[1:]}
    assert controllers == {"127.0.0.1:9095"}


def test_every_worker_config_can_be_loaded(tmp_path):
    for order in orders_of(tmp_path, 3, advertised_listeners="PLAINTEXT://here:9092"):
        config = load_config(
            file=None, environment={}, flags=order.flags, data_directory=order.data_directory
        )
        assert config.node_id == order.node_id
        assert config.log_directories == (str(tmp_path / f"worker{order.worker}"),)


def test_used_port_is_skipped_and_no_port_is_assigned_twice(tmp_path):
    orders = orders_of(tmp_path, 3, 9093, port=9092)
    assert listeners(orders) == [
        "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9095",
        "PLAINTEXT://127.0.0.1:9094",
        "PLAINTEXT://127.0.0.1:9096",
    ]


def test_port_0_assigns_each_worker_a_free_port_before_the_start(tmp_path):
    assert listeners(orders_of(tmp_path, 2, port=0)) == [
        "PLAINTEXT://127.0.0.1:40000,CONTROLLER://127.0.0.1:40001",
        "PLAINTEXT://127.0.0.1:40002",
    ]


def test_ports_beyond_65535_are_replaced_by_free_ports(tmp_path):
    second = orders_of(tmp_path, 2, port=65535)[1]
    assert second.flags["listeners"] == "PLAINTEXT://127.0.0.1:40001"


def test_each_worker_advertises_its_own_port(tmp_path):
    orders = orders_of(
        tmp_path,
        2,
        9093,
        listeners="INSIDE://:9092,OUTSIDE://0.0.0.0:19092",
        listener_security_protocol_map="INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
        inter_broker_listener_name="INSIDE",
        advertised_listeners="INSIDE://here:9092,OUTSIDE://outside:7000",
    )
    assert orders[0].flags["listeners"].startswith("INSIDE://:9092,OUTSIDE://0.0.0.0:19092,CONTR")
    assert orders[1].flags["listeners"] == "INSIDE://:9095,OUTSIDE://0.0.0.0:19093"
    assert orders[1].flags["advertised.listeners"] == "INSIDE://here:9095,OUTSIDE://outside:7001"
    protocols = orders[1].flags["listener.security.protocol.map"]
    assert protocols == "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT"


def test_configured_controller_listener_is_kept(tmp_path):
    orders = orders_of(
        tmp_path,
        2,
        listeners="PLAINTEXT://:9092,QUORUM://:7000",
        controller_listener_names="QUORUM",
    )
    assert listeners(orders) == ["PLAINTEXT://:9092,QUORUM://:7000", "PLAINTEXT://:9093"]
    assert orders[1].flags["controller.quorum.bootstrap.servers"] == "127.0.0.1:7000"


PLAIN_USERS = (
    "org.apache.kafka.common.security.plain.PlainLoginModule required "
    'username="broker" password="hunter2" user_broker="hunter2";'
)
PROTECTED = {
    "listeners": "OUTSIDE://127.0.0.1:9092",
    "listener.security.protocol.map": "OUTSIDE:SASL_PLAINTEXT",
    "sasl.enabled.mechanisms": "PLAIN",
    "sasl.mechanism.inter.broker.protocol": "PLAIN",
    "inter.broker.listener.name": "OUTSIDE",
    "listener.name.outside.plain.sasl.jaas.config": PLAIN_USERS,
}
AUTHORIZED = {
    "authorizer.class.name": STANDARD,
    "super.users": "User:broker",
    "allow.everyone.if.no.acl.found": "true",
}


# As in the files that Apache Kafka ships.
MAPPED = {"listener.security.protocol.map": "CONTROLLER:PLAINTEXT,OUTSIDE:SASL_PLAINTEXT"}


@pytest.mark.parametrize(
    "settings",
    [PROTECTED, AUTHORIZED, PROTECTED | AUTHORIZED, PROTECTED | MAPPED],
)
def test_controller_port_requires_a_login(tmp_path, settings):
    orders = orders_of(tmp_path, 2, **settings)
    configs = [Config({"log.dirs": str(tmp_path), **order.flags}) for order in orders]
    (controller,) = controller_listeners_of(configs[0])
    assert (controller.host, controller.protocol) == ("127.0.0.1", "SASL_PLAINTEXT")
    assert controller.sasl is not None
    ((name, password),) = controller.sasl.passwords.items()
    assert min(len(name), len(password)) > 20
    for config in configs:
        login = to_controllers(config).login
        assert login is not None
        assert (login.mechanism, login.user, login.password) == ("PLAIN", name, password)
        super_users = config.optional_str("super.users")
        assert super_users == (f"User:broker;User:{name}" if "super.users" in settings else None)
    again = orders_of(tmp_path, 2, **settings)
    assert password not in str(again), "of another run it is another"


def test_configured_controller_listener_keeps_its_security_protocol(tmp_path):
    settings: dict[str, Any] = PROTECTED | {
        "controller.listener.names": "INSIDE",
        "listeners": "OUTSIDE://127.0.0.1:9092,INSIDE://127.0.0.1:9300",
        "listener.security.protocol.map": "OUTSIDE:SASL_PLAINTEXT,INSIDE:PLAINTEXT",
    }
    first, second = orders_of(tmp_path, 2, **settings)
    for order in (first, second):
        assert "worker-" not in str(order.flags)
        assert order.flags["listener.security.protocol.map"].endswith("INSIDE:PLAINTEXT")


def test_each_worker_has_its_own_http_port(tmp_path):
    orders = orders_of(tmp_path, 2, wirebroker_http_listeners="[::1]:9404")
    assert orders[1].flags["wirebroker.http.listeners"] == "[::1]:9405"


@pytest.mark.parametrize(
    ("count", "settings", "replicas"),
    [
        (1, {}, "1 1 1"),
        (2, {}, "2 2 1"),
        (3, {}, "3 3 2"),
        (5, {}, "3 3 2"),
        (2, {"transaction_state_log_min_isr": "2"}, "2 2 2"),
        (5, {"offsets_topic_replication_factor": "1"}, "1 3 2"),
        (2, {"transaction_state_log_replication_factor": "5"}, "2 2 1"),
    ],
)
def test_internal_topics_get_up_to_three_replicas(tmp_path, count, settings, replicas):
    flags = orders_of(tmp_path, count, **settings)[0].flags
    offsets, transactions, in_sync = replicas.split()
    assert flags["offsets.topic.replication.factor"] == offsets
    assert flags["transaction.state.log.replication.factor"] == transactions
    assert flags["transaction.state.log.min.isr"] == in_sync


def test_data_directory_of_a_single_broker_is_kept_for_worker_1(tmp_path):
    (tmp_path / "meta.properties").touch()
    directories = [order.data_directory for order in orders_of(tmp_path, 2)]
    assert directories == [str(tmp_path), str(tmp_path / "worker2")]


def test_each_log_dir_and_metadata_dir_has_a_folder_per_worker(tmp_path):
    flags = {"log.dirs": f"{tmp_path}/a,{tmp_path}/b", "metadata.log.dir": f"{tmp_path}/m"}
    config = load_config(file=None, environment={}, flags=flags)
    orders = WorkerConfigs(
        config,
        config,
        count=2,
        flags=flags,
        file=None,
        data_directory=None,
        ports=ScriptedPorts(),
    )
    second = [orders.first(), orders.member(2)][1]
    assert second.data_directory is None
    assert second.flags["log.dirs"] == f"{tmp_path}/a/worker2,{tmp_path}/b/worker2"
    assert second.flags["metadata.log.dir"] == f"{tmp_path}/m/worker2"


@pytest.mark.parametrize("role", ["broker", "controller"])
def test_workers_require_the_combined_broker_controller_role(tmp_path, role):
    other: dict[str, Any] = {
        "broker": {"controller_quorum_bootstrap_servers": "127.0.0.1:1"},
        "controller": {
            "listeners": "CONTROLLER://:9093",
            "controller_listener_names": "CONTROLLER",
        },
    }[role]
    with pytest.raises(StartError, match=r"--workers needs process\.roles=broker,controller"):
        orders_of(tmp_path, 2, process_roles=role, **other)


def test_worker_config_is_encoded_in_one_line(tmp_path):
    order = orders_of(tmp_path, 1)[0]._replace(first_users=("SCRAM-SHA-256=[name=a]",))
    assert order.encode().count(b"\n") == 1
    assert WorkerConfig.decode(order.encode()) == order


def test_values_of_config_providers_stay_hidden_in_workers(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_LISTENERS", "PLAINTEXT://127.0.0.1:9092")
    provider = "org.apache.kafka.common.config.provider.EnvVarConfigProvider"
    flags = {
        "config.providers": "env",
        "config.providers.env.class": provider,
        "listeners": "${env:OF_LISTENERS}",
    }
    load = partial(load_config, file=None, environment=os.environ)
    config = load(flags=flags)
    orders = WorkerConfigs(
        config,
        load(flags=flags, is_one_node=False),
        count=2,
        flags=flags,
        file=None,
        data_directory=str(tmp_path),
        ports=ScriptedPorts(),
    )
    for order in (orders.first(), orders.member(2)):
        read = WorkerConfig.decode(order.encode())
        assert read == order
        described = {
            description.name: description
            for description in load(flags=read.flags).describe_broker()
        }
        assert (described["listeners"].value, described["listeners"].is_sensitive) == (None, True)
        assert described["node.id"].value == str(order.node_id)
