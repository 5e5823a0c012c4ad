"""The listeners that a member registers, and clusters that it does not join."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import running
from tests.support.tools.waiting import PATIENCE_S
from wirebroker.base.clock import SystemClock
from wirebroker.codecs.metadata_records import RecordType, metadata_record
from wirebroker.codecs.records.control import KRaftVersion
from wirebroker.config import Config, ConfigError, StartError
from wirebroker.config.rows.authorizer import STANDARD
from wirebroker.coordinator.controller.features.feature_control import feature_level
from wirebroker.coordinator.controller.image.cluster_image import ClusterImage, Endpoint
from wirebroker.coordinator.controller.image.image_builder import ImageBuilder
from wirebroker.net.client.settings import PeerAddress
from wirebroker.net.client.tcp_dialer import TcpDialer
from wirebroker.quorum.log.metadata_snapshot import FORMATTED, encode_first_snapshot
from wirebroker.quorum.log.metadata_store import DIRECTORY_NAME
from wirebroker.quorum.membership.cluster_lookup import controllers_at, find_cluster
from wirebroker.quorum.membership.join import config_of_member, configured_node_id
from wirebroker.quorum.membership.joined_quorum import JoinedQuorum, check_joinable
from wirebroker.quorum.membership.quorum_image import lowest_free_id
from wirebroker.security.login.outgoing import ConnectionMethod
from wirebroker.storage.files import Files
from wirebroker.storage.log_directory import LogDirectory

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.codecs.metadata_records import MetadataRecord

MEMBER = {
    "process.roles": "broker",
    "node.id": "2",
    "controller.quorum.bootstrap.servers": "127.0.0.1:9093",
}


def quorum_seen_from(local_host: str, **settings: str) -> JoinedQuorum:
    config = Config(MEMBER | {name.replace("_", "."): value for name, value in settings.items()})
    quorum = JoinedQuorum(config, files=Files(), clock=SystemClock(), on_failure=pytest.fail)
    quorum._local_host = local_host
    return quorum


def listener(host: str) -> Endpoint:
    return Endpoint("PLAINTEXT", host, 9092, 0)


@pytest.mark.parametrize("wildcard", ["", "0.0.0.0", "::"])
async def test_wildcard_listener_registers_the_address_seen_by_controller(wildcard):
    (told,) = await quorum_seen_from("192.0.2.7").endpoints([listener(wildcard)])
    assert told == listener("192.0.2.7")


async def test_loopback_listener_needs_a_controller_on_this_machine():
    (told,) = await quorum_seen_from("127.0.0.1").endpoints([listener("127.0.0.1")])
    assert told.host == "127.0.0.1"
    for host in ("127.0.0.1", "localhost", "::1"):
        with pytest.raises(StartError, match="which only this machine can reach"):
            await quorum_seen_from("192.0.2.7").endpoints([listener(host)])


async def test_client_listener_may_advertise_loopback_if_brokers_have_another():
    told = "PLAINTEXT://kafka-2:19092,OUTSIDE://localhost:9093"
    outside = Endpoint("OUTSIDE", "localhost", 9093, 0)
    quorum = quorum_seen_from("192.0.2.7", advertised_listeners=told)
    assert list(await quorum.endpoints([listener("kafka-2"), outside]))[1] == outside
    with pytest.raises(StartError, match="PLAINTEXT would be registered as localhost"):
        await quorum.endpoints([listener("localhost"), outside])


async def test_broker_port_given_as_controller_fails_at_once(tmp_path):
    async with asyncio.timeout(PATIENCE_S), running(tmp_path) as server:
        host, port = server.address
        controllers = controllers_at(
            [PeerAddress(host, port)], SystemClock(), way=ConnectionMethod(TcpDialer(), None)
        )
        with pytest.raises(
            StartError, match=f"{port} is a client listener, not a controller listener"
        ):
            await find_cluster(
                controllers, Config({}), clock=SystemClock(), timeout_s=10 * PATIENCE_S
            )
        await controllers.close()


CONTROLLERS = {
    "controller.quorum.bootstrap.servers": "127.0.0.1:1",
    "controller.quorum.voters": "101@127.0.0.1:2,102@127.0.0.1:3",
}


@pytest.mark.parametrize(
    ("settings", "ports"),
    [(("controller.quorum.voters",), "23"), (tuple(CONTROLLERS), "123")],
    ids=["voters", "both"],
)
async def test_observer_of_dynamic_voters_asks_all_configured_controllers(
    tmp_path, settings, ports
):
    """With kraft.version 1, the voters are those in the log, which may all have moved."""
    config = Config(
        {"process.roles": "broker", "node.id": "2"}
        | {"initial.broker.registration.timeout.ms": "100"}
        | {name: CONTROLLERS[name] for name in settings}
    )
    directory = tmp_path / DIRECTORY_NAME
    directory.mkdir()
    content = encode_first_snapshot(1, [], voters=[KRaftVersion(1)])
    (directory / FORMATTED.file_name).write_bytes(content)
    quorum = JoinedQuorum(config, files=Files(), clock=SystemClock(), on_failure=pytest.fail)
    with pytest.raises(StartError, match="the metadata was not fetched") as refused:
        await quorum.open(str(tmp_path), cluster_id="cluster", directory_id=bytes(15) + b"\x02")
    await quorum.abandon()
    asked = [f"127.0.0.1:{port}" in str(refused.value) for port in "123"]
    assert asked == [port in ports for port in "123"]


def image_of(*records: MetadataRecord) -> ClusterImage:
    return ImageBuilder(ClusterImage()).apply_all(records).build(offset=1, epoch=1)[0]


def test_joining_a_cluster_with_acls_needs_an_authorizer():
    acl = metadata_record(RecordType.ACCESS_CONTROL_ENTRY, id=bytes(16), principal="User:a")
    image = image_of(acl)
    with pytest.raises(StartError, match=r"the cluster has ACLs.*set authorizer\.class\.name"):
        check_joinable(image, Config(MEMBER))
    check_joinable(image, Config({**MEMBER, "authorizer.class.name": STANDARD}))
    check_joinable(image, Config({**MEMBER, "wirebroker.unprotected": "true"}))


def test_newer_feature_levels_are_refused():
    with pytest.raises(StartError, match=r"metadata.version at level 34"):
        check_joinable(image_of(feature_level("metadata.version", 34)), Config(MEMBER))


def test_lowest_free_id_is_neither_a_broker_nor_a_controller():
    image: Any = ClusterImage(brokers={1: None, 2: None}, controllers={3: None})  # type: ignore[dict-item]
    assert lowest_free_id(image) == 4
    assert lowest_free_id(image, above=7) == 8
    assert lowest_free_id(ClusterImage()) == 1


def test_directory_determines_the_node_id(tmp_path: Path):
    directory = str(tmp_path / "a")
    flags = {"log.dirs": directory}
    assert configured_node_id(flags, None) is None
    LogDirectory.open(directory, Files(), node_id=2, cluster_id=None).close()
    assert configured_node_id(flags, None) == configured_node_id({}, directory) == 2


def test_config_file_supplies_what_flags_omit(tmp_path: Path):
    file = tmp_path / "server.properties"
    file.write_text(
        "node.id=5\nlisteners=INSIDE://127.0.0.1:9095\ninter.broker.listener.name=INSIDE\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT,CONTROLLER:PLAINTEXT\n"
        f"log.dirs={tmp_path}/a,{tmp_path}/b\nnum.replica.fetchers=3\n"
    )
    assert configured_node_id({}, None, file) == 5
    LogDirectory.open(str(tmp_path / "a"), Files(), node_id=2, cluster_id=None).close()
    assert configured_node_id({}, None, file) == 2, "the directory knows better"
    flags = {"num.replica.fetchers": "4"}
    config = config_of_member("127.0.0.1:9093", flags=flags, file=file, node_id=2, port=9999)
    assert config.int("node.id") == 2
    assert config.list("controller.quorum.bootstrap.servers") == ("127.0.0.1:9093",)
    assert config.list("process.roles") == ("broker",)
    assert config.list("listeners") == ("INSIDE://127.0.0.1:9999",)
    assert config.int("num.replica.fetchers") == 4
    assert config.log_directories == (f"{tmp_path}/a", f"{tmp_path}/b")
    own = config_of_member(
        "127.0.0.1:9093", flags={}, file=file, node_id=2, data_directory=str(tmp_path / "a,b")
    )
    assert own.log_directories == (str(tmp_path / "a,b"),)
    file.write_text(f"node.id=five\nlog.dirs={tmp_path}/c\n")
    with pytest.raises(ConfigError, match=r"node\.id"):
        configured_node_id({}, None, file)


def test_placeholders_of_a_config_file_are_node_and_directory(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("NODE", "7")
    monkeypatch.setenv("DIRECTORY", str(tmp_path / "a"))
    file = tmp_path / "server.properties"
    file.write_text(
        "node.id=${env:NODE}\nlog.dirs=${env:DIRECTORY}\nconfig.providers=env\n"
        "config.providers.env.class="
        "org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    )
    assert configured_node_id({}, None, file) == 7
    LogDirectory.open(str(tmp_path / "a"), Files(), node_id=2, cluster_id=None).close()
    assert configured_node_id({}, None, file) == 2
