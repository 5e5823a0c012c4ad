"""API versions and configs (names, types, defaults) equal those of a running Apache Kafka."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers import java_start
from tests.support.brokers.brokers import ApacheKafka
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools import tools
from wirebroker.codecs.api_keys import API_VERSIONS, CONTROLLER_API_VERSIONS, ApiKey
from wirebroker.config.rows.row import Mutability
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from wirebroker.config.rows.row import ConfigRow

pytestmark = pytest.mark.java

_DEFAULT = 5  # DescribeConfigs' source of a default
# Different defaults; docs/guide.md and docs/compatibility.md explain them. Also a topic config that
# Kafka lists only if it is set.
OTHERS = {
    "advertised.listeners",
    "node.id",
    "process.roles",
    "socket.receive.buffer.bytes",
}
INTERNAL = "internal.segment.bytes"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BlockingClient]:
    folder = tmp_path_factory.mktemp("kafka")
    with (
        ApacheKafka(folder, java_options=java_start.options()) as broker,
        contextlib.closing(BlockingClient(("127.0.0.1", broker.port))) as client,
    ):
        yield client


def test_api_versions(kafka: BlockingClient) -> None:
    client_fields = {"client_software_name": "reference", "client_software_version": "1"}
    answer = kafka.ask(ApiKey.API_VERSIONS, 4, client_fields)
    kafka_versions = {
        ApiKey(row.api_key): (row.min_version, row.max_version) for row in answer.api_keys
    }
    for key, (lowest, highest) in kafka_versions.items():
        wirebroker_versions = API_VERSIONS.get(key) or CONTROLLER_API_VERSIONS[key]
        if tools.IS_REFERENCE:
            assert (wirebroker_versions.min_version, wirebroker_versions.max_version) == (
                lowest,
                highest,
            ), key.name
        else:
            assert (
                wirebroker_versions.min_version,
                max(wirebroker_versions.max_version, highest),
            ) == (
                lowest,
                wirebroker_versions.max_version,
            ), key.name
    # Kafka advertises telemetry only if a receiver is configured.
    assert not tools.IS_REFERENCE or API_VERSIONS.keys() <= kafka_versions.keys()


def described(client: BlockingClient, kind: int, name: str) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    request = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
    (result,) = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, request).results
    assert result.error_code == 0
    return {config.name: config for config in result.configs}


def default_of(config: Any) -> str | None:
    values = [synonym.value for synonym in config.synonyms if synonym.source == _DEFAULT]
    return values[-1] if values else (config.value if config.config_source == _DEFAULT else None)


def differences(kafka_configs: dict[str, Any], rows: dict[str, ConfigRow]) -> list[str]:
    lines: list[str] = []
    for name, config in kafka_configs.items():
        row = rows.get(name)
        if row is None or row.internal:
            lines.append(f"{name} is missing")
            continue
        wirebroker_default, kafka_default = row.default, default_of(config)
        if (wirebroker_default or "") != (kafka_default or ""):
            lines.append(f"{name}: {kafka_default!r} there, {wirebroker_default!r} here")
        if row.type.value != config.config_type:
            lines.append(f"{name}: type {config.config_type} there, {row.type.value} here")
        if (row.mutability is Mutability.READ_ONLY) != config.read_only:
            lines.append(f"{name}: read-only {config.read_only} there, {row.mutability} here")
        if row.is_sensitive != config.is_sensitive:
            lines.append(f"{name}: sensitive {config.is_sensitive} there")
    return sorted(line for line in lines if line.partition(":")[0] not in OTHERS)


def test_configs_of_brokers(kafka: BlockingClient) -> None:
    lines = differences(described(kafka, 4, "1"), ROWS)
    assert not lines, "\n".join(lines)


def test_configs_of_topics(kafka: BlockingClient) -> None:
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    request = {"topics": [topic], "timeout_ms": 30_000, "validate_only": False}
    answer = kafka.ask(ApiKey.CREATE_TOPICS, 7, request)
    kafka_configs = {config.name: config for config in answer.topics[0].configs}
    wirebroker_names = TOPIC_ROWS.keys() - {INTERNAL}
    assert (
        wirebroker_names == kafka_configs.keys()
        if tools.IS_REFERENCE
        else wirebroker_names > kafka_configs.keys()
    )
    defaults = {
        name: config.value
        for name, config in kafka_configs.items()
        if config.config_source == _DEFAULT
    }
    assert defaults == {name: TOPIC_ROWS[name].default for name in defaults}
