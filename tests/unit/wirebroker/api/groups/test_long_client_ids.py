"""A client id of 32 KiB in JoinGroup and DescribeGroups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.support.brokers.servers import ONE_NODE, client_of, running
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode

if TYPE_CHECKING:
    from pathlib import Path

    from tests.support.protocol.raw_client import RawClient

LONG = "n" * 32_767
PATIENCE = 10_000
LOADING = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)


async def join(client: RawClient, **fields: Any) -> Any:
    body = {
        "group_id": "g",
        "session_timeout_ms": 60_000,
        "rebalance_timeout_ms": 60_000,
        "member_id": "",
        "protocol_type": "consumer",
        "protocols": [{"name": "range", "metadata": b""}],
        **fields,
    }
    await client.ask(ApiKey.FIND_COORDINATOR, 1, {"key": "g", "key_type": 0})
    for _ in range(PATIENCE):
        sent = await client.send(ApiKey.JOIN_GROUP, 5, body, client_id=LONG)
        answer = await client.receive(ApiKey.JOIN_GROUP, 5, sent)
        if answer.error_code not in LOADING:
            return answer
    raise AssertionError("the coordinator does not load")


@pytest.mark.parametrize("instance_id", [None, LONG], ids=["client id", "instance id"])
async def test_a_long_client_id_fits_into_responses(
    instance_id: str | None, tmp_path: Path
) -> None:
    async with (
        running(tmp_path, settings=ONE_NODE) as server,
        client_of(server) as client,
        client_of(server) as other,
    ):
        joined = await join(client, group_instance_id=instance_id)
        if joined.error_code == ErrorCode.MEMBER_ID_REQUIRED:
            joined = await join(client, member_id=joined.member_id)
        assert joined.error_code == ErrorCode.NONE
        assert joined.member_id.startswith("n" * 255 + "-")
        assert len(joined.member_id) < 300
        described = await other.ask(ApiKey.DESCRIBE_GROUPS, 5, {"groups": ["g"]})
        (member,) = described.groups[0].members
        assert (member.member_id, member.client_id) == (joined.member_id, "n" * 255)
        assert member.group_instance_id == instance_id
