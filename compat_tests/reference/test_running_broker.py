"""API versions and configs (names, types, defaults) equal those of a running Apache Kafka."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from compat_tests.support.kafka_with_receiver import KafkaWithReceiver
from tests.support.brokers import java_start
from tests.support.brokers.brokers import ApacheKafka, Wirebroker
from tests.support.protocol.raw_client import BlockingClient
from tests.support.tools import tools
from wirebroker.api.registry import OPTIONAL_KEYS
from wirebroker.codecs.api_keys import API_VERSIONS, CONTROLLER_API_VERSIONS, ApiKey
from wirebroker.config.rows.row import Mutability
from wirebroker.config.rows.topic import TOPIC_ROWS
from wirebroker.config.table import ROWS

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

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


class Versions(NamedTuple):
    """A broker's ApiVersions response, as text by name."""

    apis: dict[str, str]
    supported: dict[str, str]
    finalized: dict[str, str]


def versions_of(client: BlockingClient) -> Versions:
    client_fields = {"client_software_name": "reference", "client_software_version": "1"}
    answer = client.ask(ApiKey.API_VERSIONS, 4, client_fields)
    return Versions(
        {
            f"{api.api_key} {ApiKey(api.api_key).name}": f"{api.min_version} to {api.max_version}"
            for api in answer.api_keys
        },
        {
            feature.name: f"{feature.min_version} to {feature.max_version}"
            for feature in answer.supported_features
        },
        {feature.name: f"{feature.max_version_level}" for feature in answer.finalized_features},
    )


def all_differences(kafka: Versions, wirebroker: Versions) -> dict[str, str]:
    """Return each difference by its key or feature: what Kafka has, and what wirebroker has."""
    return {
        f"{table} {name}": f"{there.get(name)}, here {here.get(name)}"
        for table, there, here in zip(Versions._fields, kafka, wirebroker, strict=True)
        for name in sorted({*there, *here})
        if there.get(name) != here.get(name)
    }


@pytest.mark.skipif(not tools.IS_REFERENCE, reason="another release has other versions")
def test_api_versions_of_new_brokers_are_those_of_kafka(
    kafka: BlockingClient, tmp_path: Path
) -> None:
    with (
        Wirebroker(tmp_path) as broker,
        contextlib.closing(BlockingClient(("127.0.0.1", broker.port))) as client,
    ):
        differences = all_differences(versions_of(kafka), versions_of(client))
    assert not differences, "\n".join(
        f"{name}: there {difference}" for name, difference in differences.items()
    )


@pytest.mark.skipif(not tools.IS_REFERENCE, reason="another release has other versions")
@pytest.mark.long
def test_api_versions_with_client_metrics(tmp_path: Path) -> None:
    options = java_start.options()
    enabled = {"wirebroker.client.metrics": "true"}
    with (
        KafkaWithReceiver(tmp_path / "kafka", java_options=options) as kafka_broker,
        contextlib.closing(BlockingClient(("127.0.0.1", kafka_broker.port))) as kafka_client,
        Wirebroker(tmp_path / "wirebroker", enabled) as broker,
        contextlib.closing(BlockingClient(("127.0.0.1", broker.port))) as client,
    ):
        kafka_versions, versions = versions_of(kafka_client), versions_of(client)
    assert {f"{key} {key.name}" for key in OPTIONAL_KEYS} <= kafka_versions.apis.keys()
    assert not all_differences(kafka_versions, versions)


def test_api_versions_of_other_releases(kafka: BlockingClient) -> None:
    for name, versions in versions_of(kafka).apis.items():
        key = ApiKey(int(name.split()[0]))
        own = API_VERSIONS.get(key) or CONTROLLER_API_VERSIONS[key]
        lowest, highest = map(int, versions.split(" to "))
        assert (own.min_version, max(own.max_version, highest)) == (lowest, own.max_version), name
    # Kafka advertises telemetry only if a receiver is configured.
    assert OPTIONAL_KEYS.keys().isdisjoint(
        ApiKey(int(name.split()[0])) for name in versions_of(kafka).apis
    )


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
