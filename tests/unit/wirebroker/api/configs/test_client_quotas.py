"""DescribeClientQuotas: filters over the quotas in the metadata."""

from __future__ import annotations

from typing import Any

import pytest

import wirebroker.api.configs.client_quotas  # noqa: F401 - registers its handler
from tests.unit.wirebroker.api.api_kit import answer_soon, make_broker
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.metadata_records import RecordType, metadata_record

EXACT, DEFAULT, ANY = 0, 1, 2


def quota(key: str, **entity: str | None) -> Any:
    parts = [
        {"entity_type": kind.replace("_", "-"), "entity_name": name}
        for kind, name in entity.items()
    ]
    return metadata_record(RecordType.CLIENT_QUOTA, entity=parts, key=key, value=1.5)


RECORDS = [
    quota("producer_byte_rate", user="alice"),
    quota("consumer_byte_rate", user="alice"),
    quota("producer_byte_rate", user="alice", client_id="app"),
    quota("producer_byte_rate", user=None),
    quota("connection_creation_rate", ip="10.0.0.1"),
]


async def described(components: list[tuple[str, int, str | None]], *, strict: bool = False) -> Any:
    parts = [
        {"entity_type": kind, "match_type": match_type, "match": match}
        for kind, match_type, match in components
    ]
    broker = make_broker(*RECORDS)
    request = {"components": parts, "strict": strict}
    return await answer_soon(broker, ApiKey.DESCRIBE_CLIENT_QUOTAS, 1, **request)


@pytest.mark.parametrize(
    ("components", "strict", "count"),
    [
        ([], False, 4),
        ([("user", EXACT, "alice")], False, 2),
        ([("user", EXACT, "alice")], True, 1),
        ([("user", ANY, None)], False, 3),
        ([("user", DEFAULT, None)], False, 1),
        ([("ip", ANY, None)], True, 1),
        ([("user", ANY, None), ("client-id", EXACT, "app")], True, 1),
        ([("user", EXACT, "bob")], False, 0),
    ],
)
async def test_filter_selects_matching_entities(components: Any, strict: bool, count: int) -> None:
    response = await described(components, strict=strict)
    assert (response.error_code, len(response.entries)) == (0, count)


async def test_quotas_of_an_entity_are_in_one_entry() -> None:
    response = await described([("user", EXACT, "alice")], strict=True)
    (entry,) = response.entries
    assert {(quota.key, quota.value) for quota in entry.values} == {
        ("producer_byte_rate", 1.5),
        ("consumer_byte_rate", 1.5),
    }


@pytest.mark.parametrize(
    ("components", "code"),
    [
        ([("user", EXACT, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, "alice")], ErrorCode.INVALID_REQUEST),
        ([("user", 3, None)], ErrorCode.INVALID_REQUEST),
        ([("user", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("ip", ANY, None), ("user", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("", ANY, None)], ErrorCode.INVALID_REQUEST),
        ([("planet", ANY, None)], ErrorCode.UNSUPPORTED_VERSION),
    ],
)
async def test_invalid_filter_is_refused(components: Any, code: ErrorCode) -> None:
    response = await described(components)
    assert (response.error_code, response.entries) == (code, None)


def entry(entity: dict[str, str | None], **values: float | None) -> dict[str, Any]:
    return {
        "entity": [{"entity_type": kind, "entity_name": name} for kind, name in entity.items()],
        "ops": [
            {"key": key, "value": value or 0.0, "remove": value is None}
            for key, value in values.items()
        ],
    }


async def altered(broker: Any, *entries: dict[str, Any], validate_only: bool = False) -> list[int]:
    request = {"entries": list(entries), "validate_only": validate_only}
    response = await answer_soon(broker, ApiKey.ALTER_CLIENT_QUOTAS, 1, **request)
    return [result.error_code for result in response.entries]


ALICE = (("user", "alice"),)


async def test_quotas_are_set_changed_and_removed() -> None:
    broker = make_broker(*RECORDS)
    changes = entry({"user": "alice"}, producer_byte_rate=None, request_percentage=0.5)
    assert await altered(broker, changes, entry({"ip": None}, connection_creation_rate=9)) == [0, 0]
    quotas = broker.metadata.image.client_quotas
    assert quotas[ALICE] == {"consumer_byte_rate": 1.5, "request_percentage": 0.5}
    assert quotas[("ip", None),] == {"connection_creation_rate": 9.0}
    last = entry({"user": "alice"}, consumer_byte_rate=None, request_percentage=None)
    assert await altered(broker, last) == [0]
    assert ALICE not in broker.metadata.image.client_quotas


async def test_validate_only_changes_nothing() -> None:
    broker = make_broker()
    assert await altered(broker, entry(dict(ALICE), producer_byte_rate=1), validate_only=True) == [
        0
    ]
    assert not broker.metadata.image.client_quotas


@pytest.mark.parametrize(
    ("entity", "values"),
    [
        ({}, {"producer_byte_rate": 1}),
        ({"planet": "mars"}, {"producer_byte_rate": 1}),
        ({"user": ""}, {"producer_byte_rate": 1}),
        ({"ip": "10.0.0.1", "user": "a"}, {"connection_creation_rate": 1}),
        ({"ip": "10.0.0.256"}, {"connection_creation_rate": 1}),
        ({"ip": "10.0.0.1"}, {"producer_byte_rate": 1}),
        ({"user": "a"}, {"connection_creation_rate": 1}),
        ({"user": "a"}, {"producer_byte_rate": 0}),
        ({"user": "a"}, {"producer_byte_rate": -1}),
        ({"user": "a"}, {"producer_byte_rate": float("nan")}),
        ({"user": "a"}, {"producer_byte_rate": float("inf")}),
        ({"user": "a"}, {"request_percentage": float("nan")}),
        ({"user": "a"}, {"producer_byte_rate": 1.5}),
        ({"user": "a"}, {"consumer_byte_rate": 2.0**64}),
        ({"ip": None}, {"connection_creation_rate": 2.0**31}),
    ],
)
async def test_invalid_change_is_refused_individually(entity: Any, values: Any) -> None:
    broker = make_broker()
    good = entry({"user": "bob"}, producer_byte_rate=1)
    codes = await altered(broker, entry(entity, **values), good)
    assert codes == [ErrorCode.INVALID_REQUEST, 0]
    assert list(broker.metadata.image.client_quotas) == [(("user", "bob"),)]


async def test_an_entity_or_a_quota_that_is_named_twice_is_refused() -> None:
    broker = make_broker()
    alice = entry({"user": "alice"}, producer_byte_rate=1)
    twice = entry({"user": "bob"}, producer_byte_rate=1)
    twice["ops"] *= 2
    codes = await altered(broker, alice, twice, alice)
    assert codes == [ErrorCode.INVALID_REQUEST, ErrorCode.INVALID_REQUEST]


async def test_a_request_that_is_too_large_is_refused_as_a_whole() -> None:
    broker = make_broker()
    entries = [entry({"user": str(number)}, producer_byte_rate=1) for number in range(10_001)]
    assert set(await altered(broker, *entries)) == {ErrorCode.POLICY_VIOLATION}
    assert not broker.metadata.image.client_quotas


@pytest.mark.parametrize(
    ("entity", "values", "message"),
    [
        ({}, {}, "Invalid empty client quota entity"),
        ({"planet": "x"}, {}, "Unhandled client quota entity type: planet"),
        ({"user": ""}, {}, "Empty user not supported"),
        (
            {"ip": "10.0.0.1", "user": "a"},
            {},
            "Invalid quota entity combination, IP entity shouldnot be combined with User or"
            " ClientId",
        ),
        ({"ip": "nowhere"}, {}, "nowhere is not a valid IP or resolvable host."),
        ({"user": "a"}, {"planet": 1}, "Invalid configuration key planet"),
        (
            {"user": "a"},
            {"producer_byte_rate": 0},
            "Quota producer_byte_rate must be greater than 0",
        ),
        (
            {"user": "a"},
            {"producer_byte_rate": 1.5},
            "producer_byte_rate cannot be a fractional value.",
        ),
        (
            {"user": "a"},
            {"producer_byte_rate": 2.0**64},
            "Proposed value for producer_byte_rate is too large for a LONG.",
        ),
        (
            {"ip": None},
            {"connection_creation_rate": 2.0**31},
            "Proposed value for connection_creation_rate is too large for an INT.",
        ),
    ],
)
async def test_error_messages_equal_kafkas(entity: Any, values: Any, message: str) -> None:
    request = {"entries": [entry(entity, **values)], "validate_only": False}
    response = await answer_soon(make_broker(), ApiKey.ALTER_CLIENT_QUOTAS, 1, **request)
    assert [result.error_message for result in response.entries] == [message]
