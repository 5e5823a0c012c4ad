"""Every request in every version gets a response, whatever refuses it and whatever its fields hold.

A value that cannot be encoded would close the connection and log a traceback.
"""

from __future__ import annotations

import contextlib
import copy
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.furnished_broker import furnished_broker
from tests.support.brokers.servers import (
    ThreadedServer,
    broker_of,
    client_of,
    config_of,
    memory_directory,
    running,
)
from tests.support.protocol.message_schemas import schema_of
from tests.support.protocol.message_values import INTEGER_RANGES, versions_of
from tests.support.protocol.raw_client import BlockingClient, request_frame
from tests.support.protocol.requests import create_topic
from tests.support.protocol.sample_requests import SampleRequests, fields_of
from tests.support.protocol.served_keys import served_keys
from wirebroker.base.clock import in_one_go
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, KafkaError
from wirebroker.codecs.messages import request_message
from wirebroker.coordinator.controller.controller import refusal

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from compiling.messages.schema import Field, StructSchema

# Logins have separate conversations; a second one on a connection ends it.
KEYS = [
    key
    for key in served_keys(wirebroker_client_metrics="true")
    if key not in {ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE}
]
NO_RIGHTS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
}
QUICK = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "1",
    "wirebroker.client.metrics": "true",
}


def faults(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.exc_info]


@pytest.fixture(scope="module")
def closed_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ThreadedServer]:
    """Run a broker that denies every request of the test's client."""
    with (
        memory_directory(tmp_path_factory.mktemp("data")) as data,
        ThreadedServer(config_of(data, settings={**QUICK, **NO_RIGHTS})) as server,
    ):
        yield server


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_requests_of_an_unauthorized_client_cause_no_internal_error(
    closed_broker: ThreadedServer, key: ApiKey, caplog
) -> None:
    client = BlockingClient(closed_broker.address)
    samples = SampleRequests(bytes(range(16)))
    for version in versions_of(key):
        for names_all in (False, True):
            client.ask(key, version, samples.body(key, version, names_all=names_all))
    client.close()
    assert faults(caplog) == []


@pytest.mark.parametrize(
    "error", [ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER, ErrorCode.POLICY_VIOLATION]
)
async def test_controller_errors_are_passed_on_for_every_request(
    tmp_path: Path, error: ErrorCode, caplog, monkeypatch
) -> None:
    async with running(tmp_path, settings=QUICK) as server:
        async with client_of(server) as client:
            await create_topic(client, "t")
        broker = broker_of(server)
        samples = SampleRequests(broker.metadata.image.topics["t"].topic_id)

        async def refuse(self: Any, request: Any, *_: Any, **__: Any) -> Any:
            return in_one_go(refusal(request, KafkaError(error, "no")))

        monkeypatch.setattr(type(server.controller), "handle", refuse)
        # A share group's state waits for its topic, which the controller refuses to create.
        monkeypatch.setattr("wirebroker.share.default_persister._FIRST_DELAY_S", 0.01)
        for key in KEYS:
            async with client_of(server) as client:
                for version in versions_of(key):
                    await client.ask(key, version, samples.body(key, version))
        monkeypatch.undo()
    assert faults(caplog) == []


def extremes_of(field: Field, version: int) -> list[Any]:
    values: list[Any] = []
    if field.type in INTEGER_RANGES:
        values += INTEGER_RANGES[field.type]
    elif field.type == "string":
        values += ["", "n" * 32_767, "\0", "\ud7ff" * 300]
    elif field.type in {"bytes", "records"}:
        values += [b"", b"\xff" * 70_000]
    elif field.type == "uuid":
        values += [bytes(16), b"\xff" * 16]
    elif field.type == "float64":
        values += [float("nan"), float("inf"), -1e308]
    if field.is_array:
        values = [[value] for value in values] + [[]]
    if version in field.nullable_versions:
        values.append(None)
    return values


def extreme_bodies(
    schema: StructSchema, version: int, sample: dict[str, Any]
) -> Iterator[dict[str, Any]]:
    """Yield the sample with one field at a time at an extreme value, and with all at once."""
    for field in fields_of(schema, version):
        for value in extremes_of(field, version):
            yield {**sample, field.name: value}
        if field.struct is None:
            continue
        inner = sample[field.name]
        if inner is None:
            continue
        for changed in extreme_bodies(field.struct, version, inner[0] if field.is_array else inner):
            made = copy.copy(sample)
            made[field.name] = [changed] if field.is_array else changed
            yield made


@pytest.mark.parametrize("key", KEYS, ids=lambda key: key.name)
def test_extreme_values_are_answered(tmp_path: Path, key: ApiKey, caplog) -> None:
    with furnished_broker(tmp_path, partitions=2) as broker:
        schema = schema_of(request_message(key)).body
        versions = versions_of(key)
        for version in sorted({versions[0], versions[-1], *versions[1::3]}):
            for body in extreme_bodies(schema, version, broker.samples.body(key, version)):
                with broker.client(patience_s=0.1) as client:
                    client.push(request_frame(key, version, body))
                    # The broker may close the connection on malformed data, or wait long.
                    with contextlib.suppress(TimeoutError, ConnectionError):
                        client.peek()
                assert faults(caplog) == [], (version, body)
    assert faults(caplog) == []
