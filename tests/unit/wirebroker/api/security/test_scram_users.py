"""AlterUserScramCredentials and DescribeUserScramCredentials, case by case."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import wirebroker.api.security.scram_users  # noqa: F401 - registers its handlers
from tests.unit.wirebroker.api.api_kit import answer_soon, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, encode_metadata_record, metadata_record
from wirebroker.coordinator.controller.image.cluster_image import config_record
from wirebroker.inspect.rows.decoded_records import metadata

ALICE = metadata_record(
    RecordType.USER_SCRAM_CREDENTIAL,
    name="alice",
    mechanism=1,
    salt=b"salt",
    stored_key=b"stored",
    server_key=b"server",
    iterations=4096,
)


def added(name: str, mechanism: int = 1, iterations: int = 4096) -> dict[str, Any]:
    return {
        "name": name,
        "mechanism": mechanism,
        "iterations": iterations,
        "salt": b"salt",
        "salted_password": b"salted",
    }


async def altered(broker: Any, deletions: list[Any], upsertions: list[Any]) -> dict[str, int]:
    request = {"deletions": deletions, "upsertions": upsertions}
    response = await answer_soon(broker, ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, **request)
    return {result.user: result.error_code for result in response.results}


async def test_each_user_gets_its_own_result() -> None:
    broker = make_broker(ALICE)
    deletions = [{"name": name, "mechanism": 1} for name in ("alice", "nobody")]
    few, many = added("few", iterations=4095), added("many", iterations=16_385)
    twice = [added("twice"), added("twice", 2)]
    upsertions = [added("bob"), added("", 1), added("odd", 3), few, many, *twice]
    assert await altered(broker, deletions, upsertions) == {
        "alice": 0,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "bob": 0,
        "": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "odd": ErrorCode.UNSUPPORTED_SASL_MECHANISM,
        "few": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "many": ErrorCode.UNACCEPTABLE_CREDENTIAL,
        "twice": ErrorCode.DUPLICATE_RESOURCE,
    }
    assert broker.metadata.image.scram_users().keys() == {"bob"}


async def test_user_both_removed_and_added_is_left_unchanged() -> None:
    broker = make_broker(ALICE)
    codes = await altered(broker, [{"name": "alice", "mechanism": 1}], [added("alice", 2)])
    assert codes == {"alice": ErrorCode.DUPLICATE_RESOURCE}
    assert broker.metadata.image.scram_users()["alice"].keys() == {1}


async def test_users_are_described_without_credentials() -> None:
    broker = make_broker(ALICE)
    await altered(broker, [], [added("bob", 2, 8192)])
    every = await answer_soon(broker, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=None)
    infos = {
        result.user: [(info.mechanism, info.iterations) for info in result.credential_infos]
        for result in every.results
    }
    assert infos == {"alice": [(1, 4096)], "bob": [(2, 8192)]}
    assert "stored" not in str(every.as_dict())
    names = [{"name": name} for name in ("bob", "nobody", "alice", "alice")]
    some = await answer_soon(broker, ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, 0, users=names)
    assert {result.user: result.error_code for result in some.results} == {
        "bob": 0,
        "nobody": ErrorCode.RESOURCE_NOT_FOUND,
        "alice": ErrorCode.DUPLICATE_RESOURCE,
    }


def test_dump_hides_scram_credentials() -> None:
    decoded = metadata(SimpleNamespace(value=encode_metadata_record(ALICE)))  # type: ignore[arg-type]
    assert decoded is not None
    assert (decoded["name"], decoded["iterations"]) == ("alice", 4096)
    assert {decoded[field] for field in ("salt", "stored_key", "server_key")} == {"(hidden)"}
    secret = config_record(4, "1", "listener.name.a.plain.sasl.jaas.config", "hunter2")
    decoded = metadata(SimpleNamespace(value=encode_metadata_record(secret)))  # type: ignore[arg-type]
    assert "hunter2" not in str(decoded)


def test_dump_hides_unknown_broker_configs_but_not_topic_configs() -> None:
    for kind, name, value in (
        (4, "my.plugin.password", "(hidden)"),
        (4, "log.retention.ms", "hunter2"),
        (2, "retention.ms", "hunter2"),
    ):
        record = encode_metadata_record(config_record(kind, "1", name, "hunter2"))
        decoded = metadata(SimpleNamespace(value=record))  # type: ignore[arg-type]
        assert decoded is not None
        assert decoded["value"] == value
