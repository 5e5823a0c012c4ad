"""Settings of a node that joins a cluster as a broker and a voter."""

from __future__ import annotations

import pytest

from wirebroker.config import ConfigError
from wirebroker.config.listeners.listeners import controller_listeners_of, listeners_of
from wirebroker.quorum.membership.join import config_of_member

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qk"


def joined(*, flags=None, voter="c4:9093", file=None):
    return config_of_member(
        "c1:9093",
        flags=flags or {},
        node_id=4,
        file=file,
        data_directory="data",
        host="0.0.0.0",
        port=9092,
        voter=voter,
        cluster_id=CLUSTER,
    )


def test_a_voter_has_a_controller_listener_and_adds_itself():
    config = joined()
    assert set(config.list("process.roles")) == {"broker", "controller"}
    assert config.bool("controller.quorum.auto.join.enable")
    assert config.list("controller.quorum.bootstrap.servers") == ("c1:9093",)
    assert config.optional_str("wirebroker.cluster.id") == CLUSTER
    (listener,) = controller_listeners_of(config)
    assert (listener.name, listener.host, listener.port) == ("CONTROLLER", "c4", 9093)
    (broker_listener,) = listeners_of(config)
    assert (broker_listener.host, broker_listener.port) == ("0.0.0.0", 9092)


def test_several_controllers_are_the_bootstrap_servers():
    config = config_of_member("c1:9093, [::1]:9094,", flags={}, node_id=4, data_directory="data")
    assert config.list("controller.quorum.bootstrap.servers") == ("c1:9093", "[::1]:9094")


@pytest.mark.parametrize("controllers", ["", ",", "c1:9093,c2", "c1:9093,@"])
def test_invalid_address_of_a_controller_is_refused(controllers):
    with pytest.raises(ConfigError, match=r"the controller: .*write host:port"):
        config_of_member(controllers, flags={}, node_id=4, data_directory="data")


def test_listeners_and_names_come_from_the_file(tmp_path):
    file = tmp_path / "server.properties"
    file.write_text(
        "listeners=INSIDE://:9092\ncontroller.listener.names=CTL\n"
        "listener.security.protocol.map=INSIDE:PLAINTEXT,CTL:PLAINTEXT\n"
        "inter.broker.listener.name=INSIDE\n"
    )
    config = joined(file=file, voter="[fd00::4]:9093")
    (listener,) = controller_listeners_of(config)
    assert (listener.name, listener.host) == ("CTL", "fd00::4")
    assert [listener.name for listener in listeners_of(config)] == ["INSIDE"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"voter": "c4"}, "--voter: c4 cannot be used: write host:port"),
        (
            {"flags": {"listeners": "PLAINTEXT://:9092,CONTROLLER://:9093"}},
            "listeners has CONTROLLER already",
        ),
    ],
)
def test_an_impossible_voter_is_refused(arguments, message):
    with pytest.raises(ConfigError, match=message):
        joined(**arguments)


def test_a_broker_that_joins_has_no_controller():
    config = config_of_member("c1:9093", flags={}, node_id=4, data_directory="data")
    assert config.list("process.roles") == ("broker",)
    assert controller_listeners_of(config) == ()
