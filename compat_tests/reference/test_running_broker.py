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
    asked = {"client_software_name": "reference", "client_software_version": "1"}
    answer = kafka.ask(ApiKey.API_VERSIONS, 4, asked)
    theirs = {ApiKey(row.api_key): (row.min_version, row.max_version) for row in answer.api_keys}
    for key, (lowest, highest) in theirs.items():
        ours = API_VERSIONS.get(key) or CONTROLLER_API_VERSIONS[key]
        if tools.IS_REFERENCE:
            assert (ours.min_version, ours.max_version) == (lowest, highest), key.name
        else:
            assert (ours.min_version, max(ours.max_version, highest)) == (
                lowest,
                ours.max_version,
            ), key.name
    # Kafka advertises telemetry only if a receiver is configured.
    assert not tools.IS_REFERENCE or API_VERSIONS.keys() <= theirs.keys()


def described(client: BlockingClient, kind: int, name: str) -> dict[str, Any]:
    resource = {"resource_type": kind, "resource_name": name, "configuration_keys": None}
    asked = {"resources": [resource], "include_synonyms": True, "include_documentation": False}
    (result,) = client.ask(ApiKey.DESCRIBE_CONFIGS, 4, asked).results
    assert result.error_code == 0
    return {each.name: each for each in result.configs}


def default_of(config: Any) -> str | None:
    values = [each.value for each in config.synonyms if each.source == _DEFAULT]
    return values[-1] if values else (config.value if config.config_source == _DEFAULT else None)


def differences(theirs: dict[str, Any], rows: dict[str, ConfigRow]) -> list[str]:
    found: list[str] = []
    for name, config in theirs.items():
        row = rows.get(name)
        if row is None or row.internal:
            found.append(f"{name} is missing")
            continue
        here, there = row.default, default_of(config)
        if (here or "") != (there or ""):
            found.append(f"{name}: {there!r} there, {here!r} here")
        if row.type.value != config.config_type:
            found.append(f"{name}: type {config.config_type} there, {row.type.value} here")
        if (row.mutability is Mutability.READ_ONLY) != config.read_only:
            found.append(f"{name}: read-only {config.read_only} there, {row.mutability} here")
        if row.is_sensitive != config.is_sensitive:
            found.append(f"{name}: sensitive {config.is_sensitive} there")
    return sorted(each for each in found if each.partition(":")[0] not in OTHERS)


def test_configs_of_brokers(kafka: BlockingClient) -> None:
    found = differences(described(kafka, 4, "1"), ROWS)
    assert not found, "\n".join(found)


def test_configs_of_topics(kafka: BlockingClient) -> None:
    topic = {"name": "t", "num_partitions": 1, "replication_factor": 1}
    request = {"topics": [topic], "timeout_ms": 30_000, "validate_only": False}
    answer = kafka.ask(ApiKey.CREATE_TOPICS, 7, request)
    theirs = {each.name: each for each in answer.topics[0].configs}
    known = TOPIC_ROWS.keys() - {INTERNAL}
    assert known == theirs.keys() if tools.IS_REFERENCE else known > theirs.keys()
    defaults = {name: each.value for name, each in theirs.items() if each.config_source == _DEFAULT}
    assert defaults == {name: TOPIC_ROWS[name].default for name in defaults}
