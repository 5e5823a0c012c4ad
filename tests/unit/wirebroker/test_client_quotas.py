"""DescribeClientQuotas: filters over the quotas that the metadata have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.wirebroker.api_kit import answer_soon, make_broker
from wirebroker.api import client_quotas  # noqa: F401 - registers its handler
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
async def test_a_filter_lets_entities_through(components: Any, strict: bool, count: int) -> None:
    found = await described(components, strict=strict)
    assert (found.error_code, len(found.entries)) == (0, count)


async def test_the_quotas_of_an_entity_stand_together() -> None:
    found = await described([("user", EXACT, "alice")], strict=True)
    (entry,) = found.entries
    assert {(each.key, each.value) for each in entry.values} == {
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
async def test_a_filter_that_is_none_is_refused(components: Any, code: ErrorCode) -> None:
    found = await described(components)
    assert (found.error_code, found.entries) == (code, None)
