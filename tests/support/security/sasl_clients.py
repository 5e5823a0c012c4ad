"""Manual SASL authentication, and the settings of a listener that requires it."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Any

from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.scram import SCRAM_NUMBERS, salted_password

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.support.protocol.raw_client import RawClient

PLAIN_USERS = {"alice": "alice-secret", "bob": "bob-secret"}
CLIENT_NONCE = "fyko+d2lbbFgONRv9qkxdawL"


def sasl_listener(*mechanisms: str, protocol: str = "SASL_PLAINTEXT") -> dict[str, str]:
    """Return the settings of a broker whose only listener requires authentication."""
    users = " ".join(f'user_{name}="{password}"' for name, password in PLAIN_USERS.items())
    prefix = f"listener.name.{protocol.lower()}"
    modules = {
        "PLAIN": f"plain.PlainLoginModule required {users}",
        "OAUTHBEARER": "oauthbearer.OAuthBearerLoginModule required",
    }
    return {
        "listeners": f"{protocol}://127.0.0.1:0",
        "security.inter.broker.protocol": protocol,
        "sasl.enabled.mechanisms": ",".join(mechanisms),
        "sasl.mechanism.inter.broker.protocol": mechanisms[0],
        **{
            f"{prefix}.{mechanism.lower()}.sasl.jaas.config": (
                "org.apache.kafka.common.security."
                + modules.get(mechanism, "scram.ScramLoginModule required")
                + ";"
            )
            for mechanism in mechanisms
        },
    }


async def shake_hands(client: RawClient, mechanism: str, version: int = 1) -> Any:
    return await client.ask(ApiKey.SASL_HANDSHAKE, version, {"mechanism": mechanism})


async def send_token(client: RawClient, token: bytes, version: int = 2) -> Any:
    return await client.ask(ApiKey.SASL_AUTHENTICATE, version, {"auth_bytes": token})


async def log_in_plain(client: RawClient, user: str, password: str) -> Any:
    await shake_hands(client, "PLAIN")
    return await send_token(client, f"\0{user}\0{password}".encode())


async def log_in_scram(
    client: RawClient, mechanism: str, user: str, password: str, *, by_token: bool = False
) -> Any:
    await shake_hands(client, mechanism)
    bare = f"n={user},r={CLIENT_NONCE}" + (",tokenauth=true" if by_token else "")
    answer = await send_token(client, b"n,," + bare.encode())
    if answer.error_code:
        return answer
    first = answer.auth_bytes.decode()
    return await send_token(client, scram_final(mechanism, password, bare, first))


def scram_final(mechanism: str, password: str, bare: str, first: str) -> bytes:
    """Return the client's final message, which proves its password."""
    fields: Mapping[str, str] = dict(part.split("=", 1) for part in first.split(","))
    number = SCRAM_NUMBERS[mechanism]
    salt = base64.b64decode(fields["s"])
    salted = salted_password(number, password, salt, int(fields["i"]))
    unproved = f"c=biws,r={fields['r']}"
    name = {1: "sha256", 2: "sha512"}[number]
    client_key = hmac.digest(salted, b"Client Key", name)
    stored_key = hashlib.new(name, client_key).digest()
    signature = hmac.digest(stored_key, f"{bare},{first},{unproved}".encode(), name)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    return f"{unproved},p={base64.b64encode(proof).decode()}".encode()


async def add_scram_user(client: RawClient, mechanism: str, user: str, password: str) -> Any:
    number, salt = SCRAM_NUMBERS[mechanism], b"0123456789abcdef"
    upsertion = {
        "name": user,
        "mechanism": number,
        "iterations": 4096,
        "salt": salt,
        "salted_password": salted_password(number, password, salt, 4096),
    }
    request = {"deletions": [], "upsertions": [upsertion]}
    answer = await client.ask(ApiKey.ALTER_USER_SCRAM_CREDENTIALS, 0, request)
    (result,) = answer.results
    return result
