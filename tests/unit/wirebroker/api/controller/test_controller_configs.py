"""Configs at a controller's own listener, for `kafka-configs.sh --bootstrap-controller`."""

from __future__ import annotations

import contextlib
import logging
import socket
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.controller_process import CLUSTER_ID, CONTROLLER_ID
from tests.support.protocol.raw_client import RawClient
from wirebroker.broker.controller_server import ControllerServer
from wirebroker.codecs.api_keys import API_VERSIONS, ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.config import Config
from wirebroker.coordinator.controller.image.cluster_image import ResourceType

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

OWN = str(CONTROLLER_ID)
SETTINGS = {
    "process.roles": "controller",
    "node.id": OWN,
    "wirebroker.cluster.id": CLUSTER_ID,
    "controller.listener.names": "CONTROLLER",
    "listeners": "CONTROLLER://127.0.0.1:0",
    "num.io.threads": "7",
}


@contextlib.asynccontextmanager
async def controller(directory: Path, **settings: str) -> AsyncIterator[RawClient]:
    server = ControllerServer(Config({**SETTINGS, "log.dirs": str(directory), **settings}))
    await server.start()
    client = await RawClient.connect(("127.0.0.1", server.bound[0].port))
    try:
        yield client
    finally:
        await client.close()
        await server.stop()


async def described(client: RawClient, name: str, *, version: int = 4, **fields: Any) -> Any:
    resource = {"resource_type": ResourceType.BROKER, "resource_name": name}
    body = {"resources": [{**resource, "configuration_keys": None, **fields}]}
    (result,) = (await client.ask(ApiKey.DESCRIBE_CONFIGS, version, body)).results
    return result


async def set_config(client: RawClient, node: str, name: str, value: str) -> Any:
    change = {"name": name, "config_operation": 0, "value": value}
    resource = {"resource_type": ResourceType.BROKER, "resource_name": node, "configs": [change]}
    body = {"resources": [resource], "validate_only": False}
    (result,) = (await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)).responses
    return result


@pytest.mark.parametrize("version", range(1, API_VERSIONS[ApiKey.DESCRIBE_CONFIGS][1] + 1))
async def test_a_controller_describes_its_own_configs(tmp_path: Path, version: int) -> None:
    async with controller(tmp_path) as client:
        result = await described(client, OWN, version=version)
        values = {config.name: config.value for config in result.configs}
        assert (result.error_code, values["num.io.threads"]) == (0, "7")
        assert values["node.id"] == OWN


async def test_own_and_default_configs_are_described(tmp_path: Path) -> None:
    async with controller(tmp_path) as client:
        assert (await set_config(client, OWN, "log.retention.ms", "1000")).error_code == 0
        assert (await set_config(client, "", "log.retention.ms", "2000")).error_code == 0
        own = {config.name: config.value for config in (await described(client, OWN)).configs}
        every = {config.name: config.value for config in (await described(client, "")).configs}
        assert (own["log.retention.ms"], every["log.retention.ms"]) == ("1000", "2000")


async def test_configs_of_other_nodes_are_refused(tmp_path: Path) -> None:
    async with controller(tmp_path) as client:
        assert (await described(client, "7")).error_code == ErrorCode.INVALID_REQUEST
        refused = await set_config(client, "7", "log.retention.ms", "1000")
        assert refused.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED
        for name in ("9" * 5_000, "\u0663", "x"):
            wrong = await set_config(client, name, "log.retention.ms", "1000")
            assert wrong.error_code == ErrorCode.INVALID_REQUEST


async def test_describing_configs_needs_authorization(tmp_path: Path) -> None:
    standard = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    async with controller(tmp_path, **{"authorizer.class.name": standard}) as client:
        result = await described(client, OWN)
        assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert result.configs == []


@pytest.mark.parametrize(
    ("settings", "host"),
    [
        ({"listeners": "CONTROLLER://localhost:0"}, "localhost"),
        ({"listeners": "CONTROLLER://0.0.0.0:0"}, socket.gethostname()),
        ({"advertised.listeners": "CONTROLLER://controller.example:0"}, "controller.example"),
    ],
    ids=["as configured", "every interface", "advertised"],
)
async def test_controller_is_listed_with_its_configured_host(
    tmp_path: Path, settings: dict[str, str], host: str
) -> None:
    async with controller(tmp_path, **settings) as client:
        described = await client.ask(ApiKey.DESCRIBE_CLUSTER, 1, {"endpoint_type": 2})
    (node,) = described.brokers
    assert (node.broker_id, node.host) == (CONTROLLER_ID, host)


async def test_the_loggers_of_a_controller_are_changed_at_its_listener(tmp_path: Path) -> None:
    name = "tests.controller.loggers"
    logging.getLogger(name).setLevel(logging.INFO)
    logger = {"resource_type": ResourceType.BROKER_LOGGER, "resource_name": OWN}

    def row(value: str, node: str = OWN) -> dict[str, Any]:
        configs = [{"name": name, "config_operation": 0, "value": value}]
        return {**logger, "resource_name": node, "configs": configs}

    def other(node: str) -> dict[str, Any]:
        configs = [{"name": "log.retention.ms", "config_operation": 0, "value": "1000"}]
        return {"resource_type": ResourceType.BROKER, "resource_name": node, "configs": configs}

    async with controller(tmp_path) as client:
        for resources, codes in (
            ([other(OWN), row("ERROR")], [0, 0]),
            ([row("LOUD")], [ErrorCode.INVALID_CONFIG]),
            ([row("DEBUG", "77"), other("")], [ErrorCode.INVALID_REQUEST, 0]),
            ([row("DEBUG"), row("DEBUG")], [ErrorCode.INVALID_REQUEST] * 2),
        ):
            body = {"resources": resources, "validate_only": False}
            answer = await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)
            assert [response.error_code for response in answer.responses] == codes
        body = {"resources": [{**logger, "configuration_keys": [name, "root"]}]}
        (result,) = (await client.ask(ApiKey.DESCRIBE_CONFIGS, 4, body)).results
        assert [config.name for config in result.configs] == ["root", name]
        assert result.configs[1].value == "ERROR"


async def test_unauthorized_client_cannot_change_controller_loggers(
    tmp_path: Path,
) -> None:
    name = "tests.controller.denied"
    logging.getLogger(name).setLevel(logging.INFO)
    authorizer = {
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
    }
    configs = [{"name": name, "config_operation": 0, "value": "ERROR"}]
    logger = {"resource_type": ResourceType.BROKER_LOGGER, "resource_name": OWN}
    async with controller(tmp_path, **authorizer) as client:
        body = {"resources": [{**logger, "configs": configs}], "validate_only": False}
        (result,) = (await client.ask(ApiKey.INCREMENTAL_ALTER_CONFIGS, 1, body)).responses
        assert result.error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        assert logging.getLogger(name).level == logging.INFO
