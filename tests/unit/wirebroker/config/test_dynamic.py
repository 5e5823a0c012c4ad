"""Dynamic configs from the metadata: which are used, and messages about the rest."""

from __future__ import annotations

import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import broker_of, client_of, running
from tests.support.protocol.raw_client import RawClient
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.config import Config, ConfigError
from wirebroker.config.lookup import base_name, is_read, is_read_only, row_of
from wirebroker.config.sources.dynamic import check_change, usable, with_usable

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("node.id", "2", "node.id"),
        ("broker.heartbeat.interval.ms", "2", "update these configs dynamically"),
        ("wirebroker.typo", "2", "not a config"),
        ("wirebroker.durability", "fsync", "update these configs dynamically"),
        ("ssl.keystore.location", "/x", "single listeners"),
        ("max.connections", "many", "32-bit integer"),
        ("listener.name.plaintext.max.connections", "many", "32-bit integer"),
        ("metric.reporters", "no.Such", "class"),
        ("sasl.jaas.config", "secret", "protection"),
        ("listener.name.plaintext.ssl.client.auth", "perhaps", "one of"),
    ],
)
def test_unusable_dynamic_value_is_ignored_with_a_message(name, value, word) -> None:
    config = Config({"max.connections": "9"})
    usable_config, problems = with_usable(
        config, cluster_wide={}, this_broker={name: value, "max.connections.per.ip": "4"}
    )
    assert (usable_config.int("max.connections"), usable_config.int("max.connections.per.ip")) == (
        9,
        4,
    )
    (problem,) = problems
    assert word in problem
    with pytest.raises(ConfigError, match=word):
        check_change(config, cluster_wide={}, this_broker={name: value}, is_default=False)


def test_broker_only_configs_are_ignored_as_cluster_defaults() -> None:
    wide = {"listeners": "PLAINTEXT://:1", "listener.name.plaintext.max.connections": "3"}
    assert usable(wide, Config(), is_default=True).keys() == {
        "listener.name.plaintext.max.connections"
    }
    assert usable(wide, Config(), is_default=False) == wide


def test_inconsistent_dynamic_values_fall_back_to_the_layer_below() -> None:
    usable_config, problems = with_usable(
        Config(),
        cluster_wide={"max.connections": "7"},
        this_broker={"log.cleaner.threads": "200"},
    )
    assert usable_config.int("max.connections") == 7
    assert usable_config.int("log.cleaner.threads") == 1
    assert "dedupe" in problems[0]


def test_unsupported_dynamic_listener_falls_back_to_the_layer_below() -> None:
    secure = {
        "listeners": "PLAINTEXT://:9092,SSL://:9093",
        "max.connections": "7",
    }
    usable_config, (problem,) = with_usable(Config(), cluster_wide={}, this_broker=secure)
    assert usable_config.list("listeners") == ("PLAINTEXT://:9092",)
    assert "SSL" in problem


def test_listener_config_overrides_the_broker_config() -> None:
    config = Config(
        {"max.connections": "9", "listener.name.inside.max.connections": "3"}
    ).with_dynamic(
        cluster_wide={"listener.name.other.max.connections": "5"},
        this_broker={"listener.name.inside.max.connections": "4"},
    )
    limits = [config.listener_int(name, "max.connections") for name in ("INSIDE", "OTHER", "THIRD")]
    assert limits == [4, 5, 9]
    assert config.warnings() == ()


def test_listener_prefixed_config_names_are_recognized() -> None:
    own = "listener.name.inside.ssl.keystore.location"
    assert base_name(own) == "ssl.keystore.location"
    assert (row_of(own), row_of("no.such")) == (row_of("ssl.keystore.location"), None)
    assert (is_read(own), is_read("listener.name.a.max.connections")) == (True, True)
    assert (
        is_read_only(own),
        is_read_only("broker.session.timeout.ms"),
        is_read_only("no.such"),
    ) == (
        False,
        True,
        False,
    )


async def change(client: RawClient, *changes: tuple[str, str]) -> int:
    entries = [{"name": n, "config_operation": 0, "value": v} for n, v in changes]
    resource = {"resource_type": 4, "resource_name": "1", "configs": entries}
    answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, {"resources": [resource]})
    code: int = answer.responses[0].error_code
    return code


def added(port: int) -> tuple[tuple[str, str], tuple[str, str]]:
    return (
        ("listeners", f"PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:{port}"),
        ("listener.security.protocol.map", "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT"),
    )


async def test_added_listener_exists_after_a_restart(tmp_path: Path) -> None:
    with socket.socket() as free_socket:
        free_socket.bind(("127.0.0.1", 0))
        port = free_socket.getsockname()[1]
    async with running(tmp_path) as server, client_of(server) as client:
        assert await change(client, *added(port)) == 0
    async with running(tmp_path) as server:
        inside = await RawClient.connect(("127.0.0.1", port))
        answer = await inside.ask(ApiKey.METADATA, 12, {"topics": []})
        assert [(broker.host, broker.port) for broker in answer.brokers] == [("127.0.0.1", port)]
        await inside.close()


async def test_listener_that_cannot_be_opened_is_logged_and_others_serve(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR), socket.socket() as socket_in_use:
        socket_in_use.bind(("127.0.0.1", 0))
        socket_in_use.listen()
        port = socket_in_use.getsockname()[1]
        async with running(tmp_path) as server, client_of(server) as client:
            assert await change(client, *added(port)) == 0
            assert server.listeners is not None
            assert "INSIDE" not in server.listeners
            assert await change(client, ("max.connections.per.ip", "5")) == 0
    assert "INSIDE cannot be opened" in caplog.text


async def test_only_unadvertised_listeners_can_be_removed(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "listeners": "PLAINTEXT://127.0.0.1:0,INSIDE://127.0.0.1:0",
        "advertised.listeners": "PLAINTEXT://127.0.0.1:0",
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,INSIDE:PLAINTEXT",
    }

    async with running(tmp_path, settings=settings) as server, client_of(server) as client:
        assert await change(client, ("listeners", "INSIDE://127.0.0.1:0")) == 42
        assert await change(client, ("listeners", "PLAINTEXT://127.0.0.1:0")) == 0
        assert server.listeners is not None
        assert "INSIDE" not in server.listeners
        assert broker_of(server).auto_listeners == frozenset()


async def test_interval_between_assignments_changes_immediately_within_its_limits(
    tmp_path: Path,
) -> None:
    name = "group.consumer.assignment.interval.ms"
    async with running(tmp_path) as server, client_of(server) as client:
        assert await change(client, (name, "7")) == 0
        assert broker_of(server).groups.settings.consumer_assignment_interval_ms == 7
        assert await change(client, (name, "15001")) == 42
    limits = {"group.consumer.min.assignment.interval.ms": "500"}
    async with running(tmp_path, settings=limits) as server:
        assert broker_of(server).groups.settings.consumer_assignment_interval_ms == 500
