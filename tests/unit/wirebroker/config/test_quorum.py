"""The controllers of a node, and contradictory settings."""

from __future__ import annotations

import re

import pytest

from tests.unit.wirebroker.config.quorum_settings import (
    BROKER,
    CASES,
    COMBINED,
    CONTROLLER,
    SERVERS,
)
from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import controller_listeners_of, listeners_of
from wirebroker.config.listeners.other_controllers import names_other_controllers
from wirebroker.config.quorum import controllers_of, is_member, parse_address, voters_of

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


def test_controllers_of_one_quorum_name_each_other():
    config = Config(CONTROLLER | {"controller.quorum.voters": "1@[::1]:9093, 2@c2:9093"})
    assert voters_of(config) == {1: ("::1", 9093), 2: ("c2", 9093)}
    assert names_other_controllers(config)


@pytest.mark.parametrize(
    ("settings", "is_among_others"),
    [
        ({}, False),
        ({"controller.quorum.voters": ""}, False),
        ({"controller.quorum.voters": "", SERVERS: "localhost:9093"}, False),
        ({"controller.quorum.voters": "", SERVERS: "c1:9093"}, True),
        ({"controller.quorum.voters": "", SERVERS: "localhost:9093,c2:9093"}, True),
        (
            {
                "controller.quorum.voters": "",
                SERVERS: "c1:19093,127.0.0.1:9093",
                "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
                "advertised.listeners": "PLAINTEXT://c1:9092,CONTROLLER://c1:19093",
            },
            False,
        ),
        ({**BROKER, "controller.quorum.voters": "1@c1:9093,3@c3:9093"}, False),
    ],
)
def test_a_controller_recognizes_its_own_address(settings, is_among_others):
    assert names_other_controllers(Config({**COMBINED, **settings})) == is_among_others


@pytest.mark.parametrize("case", CASES, ids=str)
def test_settings_of_roles_voters_and_listeners_are_checked(case):
    def load():
        config = Config(case.settings)
        listeners_of(config)
        controller_listeners_of(config)

    if not case.ours:
        load()
        return
    with pytest.raises(ConfigError, match=re.escape(case.ours)):
        load()
