"""DescribeUserScramCredentials and AlterUserScramCredentials (KIP-554).

Keys are never described. Rules: coordinator/controller/security/scram_control.py.

Source: Kafka's ScramImage.describe.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from wirebroker.api.registry import handles
from wirebroker.base.clock import Slices
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode, shortened
from wirebroker.codecs.permissions import DESCRIBE_CLUSTER
from wirebroker.request.handlers import Cost

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.api.broker import Broker
    from wirebroker.codecs.scram import ScramKeys
    from wirebroker.request.request import Request


@handles(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, permissions=(DESCRIBE_CLUSTER,), cost=Cost.READS)
async def describe_scram_users(broker: Broker, request: Request, body: Any) -> dict[str, Any]:
    """Describe some users, or all."""
    del request
    users = broker.metadata.image.scram_users()
    slices = Slices(broker.clock)
    if not body.users:
        results: list[dict[str, Any]] = []
        for name in sorted(users):
            results.append(_described(name, users[name]))
            await slices.turn()
        return {"error_code": ErrorCode.NONE, "error_message": "", "results": results}
    counts: dict[str, int] = {}
    for user in body.users:
        counts[user.name] = counts.get(user.name, 0) + 1
    results = []
    for name, count in counts.items():
        results.append(_requested_user(name, users.get(name), is_repeated=count > 1))
        await slices.turn()
    return {"error_code": ErrorCode.NONE, "error_message": "", "results": results}


def _requested_user(
    name: str, credentials: Mapping[int, ScramKeys] | None, *, is_repeated: bool
) -> dict[str, Any]:
    if is_repeated:
        return _failed(
            name,
            ErrorCode.DUPLICATE_RESOURCE,
            "Cannot describe SCRAM credentials for the same user twice in a single request: "
            + name,
        )
    if credentials is None:
        return _failed(
            name,
            ErrorCode.RESOURCE_NOT_FOUND,
            f"Attempt to describe a user credential that does not exist: {name}",
        )
    return _described(name, credentials)


def _failed(name: str, code: ErrorCode, message: str) -> dict[str, Any]:
    return {
        "user": name,
        "error_code": code,
        "error_message": shortened(message),
        "credential_infos": [],
    }


def _described(name: str, credentials: Mapping[int, ScramKeys]) -> dict[str, Any]:
    return {
        "user": name,
        "error_code": ErrorCode.NONE,
        "error_message": None,
        "credential_infos": [
            {"mechanism": mechanism, "iterations": keys.iterations}
            for mechanism, keys in sorted(credentials.items())
        ],
    }
