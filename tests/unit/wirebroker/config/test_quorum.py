"""The controllers of a node, and contradictory settings."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import listeners_of
from wirebroker.config.quorum import controllers_of, is_member, parse_address

MEMBER = {"process.roles": "broker", "node.id": "2", "controller.listener.names": "CONTROLLER"}


def test_node_without_roles_runs_its_own_controller():
    assert not is_member(Config())
    assert controllers_of(Config()) == []


def test_joining_broker_contacts_each_configured_controller_once():
    config = Config(
        {
            **MEMBER,
            "controller.quorum.bootstrap.servers": "c1:9093, [::1]:9094",
            "controller.quorum.voters": "101@c1:9093,102@c2:9093",
        }
    )
    assert is_member(config)
    assert controllers_of(config) == [("c1", 9093), ("::1", 9094), ("c2", 9093)]
    assert [listener.name for listener in listeners_of(config)] == ["PLAINTEXT"]


@pytest.mark.parametrize("text", ["c1", "c1:", ":9", "c1:0", "c1:65536", "0.0.0.0:9", "a@b:1"])
def test_invalid_address_is_refused(text):
    with pytest.raises(ConfigError, match="write host:port"):
        parse_address(text, "HOST:PORT")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "controllers to join"),
        ({"controller.quorum.voters": "1@a:1,2@b:1"}, "choose another node.id"),
        ({"controller.quorum.bootstrap.servers": "nobody"}, "write host:port"),
        (
            {
                "controller.quorum.bootstrap.servers": "c1:9093",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
            },
            "other nodes open it",
        ),
        (
            {
                "controller.quorum.bootstrap.servers": "c1:9093",
                "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:TLS",
            },
            "CONTROLLER:TLS cannot be used",
        ),
    ],
)
def test_invalid_settings_of_a_joining_broker_are_refused(settings, words):
    with pytest.raises(ConfigError, match=words):
        listeners_of(Config(MEMBER | settings))


@pytest.mark.parametrize(
    ("voters", "words"),
    [
        ("1@a:1,2@b:1", "need a listener of this controller"),
        ("2@b:1,3@c:1", "does not name node.id=1"),
        ("one@a:1", "write id@host:port"),
    ],
)
def test_voters_that_a_controller_cannot_join_are_refused(voters, words):
    with pytest.raises(ConfigError, match=words):
        Config({"controller.quorum.voters": voters})
