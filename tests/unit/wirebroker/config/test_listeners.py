"""Opened and advertised addresses, as Kafka determines them."""

from __future__ import annotations

import pytest

from wirebroker.config import Config, ConfigError
from wirebroker.config.listeners.listeners import Address, listeners_of


def test_default_listener_binds_every_interface_without_advertised_address():
    (listener,) = listeners_of(Config())
    assert listener == ("PLAINTEXT", "", 9092, "PLAINTEXT", None, None, None)


def test_named_listeners_have_their_own_protocol_and_advertised_address():
    config = Config(
        {
            "listeners": "inside://:9092,OUTSIDE://[::1]:9094",
            "advertised.listeners": "INSIDE://broker1:9092,OUTSIDE://kafka.example.org:443",
            "listener.security.protocol.map": "INSIDE:PLAINTEXT, outside:plaintext",
            "inter.broker.listener.name": "INSIDE",
        }
    )
    inside, outside = listeners_of(config)
    assert inside == ("INSIDE", "", 9092, "PLAINTEXT", Address("broker1", 9092), None, None)
    advertised = Address("kafka.example.org", 443)
    assert outside == ("OUTSIDE", "::1", 9094, "PLAINTEXT", advertised, None, None)


def test_controller_listener_is_not_a_client_listener():
    config = Config(
        {
            "listeners": "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093",
            "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": "1@127.0.0.1:9093",
        }
    )
    (listener,) = listeners_of(config)
    assert (listener.name, listener.advertised) == ("PLAINTEXT", Address("localhost", 9092))


def test_ipv4_and_ipv6_listeners_may_share_a_port():
    config = Config(
        {
            "listeners": "A://127.0.0.1:9092,B://[::1]:9092",
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        }
    )
    assert len(listeners_of(config)) == 2


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"listeners": "127.0.0.1:9092"}, "NAME://host:port"),
        ({"listeners": "A\nB://:9092"}, "NAME://host:port"),
        ({"listeners": "A\u2028://:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://ho st:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://höst:9092"}, "NAME://host:port"),
        ({"listeners": "PLAINTEXT://:99999"}, "65535"),
        ({"listeners": "PLAINTEXT://:-1"}, "65535"),
        ({"listeners": ""}, "add one"),
        ({"listeners": "PLAINTEXT://:1,PLAINTEXT://:2"}, "twice"),
        ({"listeners": "A://:1"}, "add A:PLAINTEXT"),
        ({"listeners": "SSL://:1"}, "listener.name.ssl.ssl.keystore.location is missing"),
        ({"listeners": "PLAINTEXT://:1,SSL://:1"}, "share port 1"),
        ({"listener.security.protocol.map": "PLAINTEXT:TELNET"}, "NAME: and one of PLAINTEXT"),
        ({"advertised.listeners": "PLAINTEXT://0.0.0.0:1"}, "clients can reach"),
        ({"advertised.listeners": "PLAINTEXT://:1"}, "clients can reach"),
        ({"advertised.listeners": "OTHER://a:1"}, "not one of listeners"),
        ({"inter.broker.listener.name": "X"}, "not an advertised listener"),
    ],
)
def test_unusable_listener_settings_are_refused_in_one_line(settings, words):
    with pytest.raises(ConfigError) as caught:
        listeners_of(Config(settings))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
