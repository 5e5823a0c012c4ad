"""SCRAM users (KIP-554); passwords leave this process only salted and hashed."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple

from wirebroker.client.errors import ClientError, check, with_done
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.errors import ErrorCode
from wirebroker.codecs.scram import SALT_BITS, SCRAM_MECHANISMS, salt_of, salted_password

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from wirebroker.client.kafka_client import KafkaClient


class ScramUser(NamedTuple):
    """A user's credentials for one mechanism."""

    name: str
    mechanism: str
    iterations: int


async def list_users(client: KafkaClient, names: Sequence[str] = ()) -> list[ScramUser]:
    """Return the named users, or all, that have credentials."""
    body = {"users": [{"name": name} for name in dict.fromkeys(names)] or None}
    answer = await client.request(ApiKey.DESCRIBE_USER_SCRAM_CREDENTIALS, body)
    check(answer.error_code, "users cannot be listed", answer.error_message)
    users: list[ScramUser] = []
    for result in answer.results:
        if result.error_code != ErrorCode.RESOURCE_NOT_FOUND:
            check(result.error_code, f"user {result.user} cannot be shown", result.error_message)
        users += (
            ScramUser(
                result.user,
                SCRAM_MECHANISMS.get(info.mechanism, f"unknown({info.mechanism})"),
                info.iterations,
            )
            for info in result.credential_infos
        )
    return sorted(users)


class NewPassword(NamedTuple):
    """A new password, which is never sent."""

    password: str
    iterations: int  # of the hash


async def set_user(client: KafkaClient, name: str, mechanism: int, new: NewPassword) -> None:
    """Create a user, or change a password, for a mechanism of SCRAM_MECHANISMS."""
    await alter_user(client, name, {mechanism: new})


async def delete_user(client: KafkaClient, name: str, mechanisms: Iterable[int]) -> None:
    """Remove a user's credentials, one request for each mechanism.

    Raises:
        ClientError: A removal is refused; the message says how many succeeded before.
    """
    for count, mechanism in enumerate(mechanisms):
        try:
            await alter_user(client, name, {mechanism: None})
        except ClientError as error:
            raise with_done(error, count, "mechanism", "removed before") from None


async def alter_user(
    client: KafkaClient, name: str, changes: Mapping[int, NewPassword | None]
) -> None:
    """Change a user's credentials, all or none; None removes a mechanism's, which must exist."""
    deletions: list[dict[str, Any]] = []
    upsertions: list[dict[str, Any]] = []
    for mechanism, new in changes.items():
        row: dict[str, Any] = {"name": name, "mechanism": mechanism}
        if new is None:
            deletions.append(row)
            continue
        salt = salt_of(secrets.randbits(SALT_BITS))
        salted = salted_password(mechanism, new.password, salt, new.iterations)
        hashed = {"iterations": new.iterations, "salt": salt, "salted_password": salted}
        upsertions.append(row | hashed)
    body = {"deletions": deletions, "upsertions": upsertions}
    answer = await client.request(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, body)
    for result in answer.results:
        check(result.error_code, f"user {result.user} cannot be changed", result.error_message)
