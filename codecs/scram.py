"""SCRAM: its messages, and the keys derived from a password (RFC 5802, RFC 7677).

    client first    n,,n=<user>,r=<client nonce>[,tokenauth=true]
    server first    r=<client nonce><server nonce>,s=<salt>,i=<iterations>
    client final    c=biws,r=<both nonces>,p=<proof>
    server final    v=<signature>

    salted password = PBKDF2(password, salt, iterations)     sent by clients of the Kafka protocol
    client key = HMAC(salted password, "Client Key")         never stored
    stored key = H(client key)                               stored: verifies a proof
    server key = HMAC(salted password, "Server Key")         stored: signs the response

Names and passwords are used as UTF-8 bytes, without SASLprep, as in Apache Kafka. Malformed
messages raise MalformedFrameError.

Source: Kafka's ScramMessages, ScramFormatter and ScramMechanism.
"""

from __future__ import annotations

import base64
import binascii
import re
from typing import Final, NamedTuple

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.hashes import are_same, digest, keyed_digest, stretched

# By the protocol's numbers.
_HASHES: Final = {1: "sha256", 2: "sha512"}
SCRAM_MECHANISMS: Final = {1: "SCRAM-SHA-256", 2: "SCRAM-SHA-512"}
SCRAM_NUMBERS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}
LEAST_ITERATIONS: Final = 4096
MOST_ITERATIONS: Final = 16_384

# Names and nonces have a few dozen characters.
_LONGEST_MESSAGE_BYTES: Final = 8192
_CLIENT_FIRST: Final = re.compile(
    r"n,(?:a=(?P<authzid>[^,=]*(?:=2C[^,=]*|=3D[^,=]*)*))?,"
    r"(?P<bare>n=(?P<name>[^,=]*(?:=2C[^,=]*|=3D[^,=]*)*),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?P<extensions>(?:,[A-Za-z]+=[^,]+)*))"
)
_CLIENT_FINAL: Final = re.compile(
    r"(?P<unproved>c=(?P<channel>[A-Za-z0-9+/=]+),r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+)"
    r"(?:,[A-Za-z]+=[^,]+)*),p=(?P<proof>[A-Za-z0-9+/=]+)"
)
_SERVER_FIRST: Final = re.compile(
    r"r=(?P<nonce>[\x21-\x2b\x2d-\x7e]+),s=(?P<salt>[A-Za-z0-9+/=]+),i=(?P<iterations>\d{1,7})"
    r"(?:,[A-Za-z]+=[^,]+)*"
)
# Limit on a client's work, about a tenth of a second.
_MOST_CLIENT_ITERATIONS: Final = 200_000

# As in Kafka's tools.
SALT_BITS: Final = 130
_DIGITS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"


class ScramKeys(NamedTuple):
    """The stored form of a password."""

    salt: bytes
    stored_key: bytes
    server_key: bytes
    iterations: int


class ClientFirst(NamedTuple):
    """The client's first message."""

    user: str
    authorization_id: str
    nonce: str
    # The part that the proof covers, without the header.
    bare: str
    is_by_token: bool


class ClientFinal(NamedTuple):
    """The client's final message."""

    nonce: str
    proof: bytes
    # The part that the proof covers.
    unproved: str


class ServerFirst(NamedTuple):
    """The server's first message."""

    nonce: str
    salt: bytes
    iterations: int
    text: str


class ClientProof(NamedTuple):
    """The client's final message, and the expected response."""

    message: bytes
    answer: bytes


def salt_of(number: int) -> bytes:
    """Return a salt as Kafka's tools generate it: base-36 digits as text.

    `number` is unpredictable and has SALT_BITS bits.
    """
    digits = ""
    while number:
        number, digit = divmod(number, len(_DIGITS))
        digits = _DIGITS[digit] + digits
    return digits.encode() or b"0"


def salted_password(mechanism: int, password: str, salt: bytes, iterations: int) -> bytes:
    """Return the salted password; slow on purpose."""
    return stretched(_HASHES[mechanism], password.encode(), salt, iterations)


def keys_of(mechanism: int, salted: bytes, *, salt: bytes, iterations: int) -> ScramKeys:
    """Return the keys of a salted password."""
    client_key = _hmac(mechanism, salted, b"Client Key")
    server_key = _hmac(mechanism, salted, b"Server Key")
    return ScramKeys(salt, _hash(mechanism, client_key), server_key, iterations)


def is_proved(mechanism: int, keys: ScramKeys, proof: bytes, exchanged: bytes) -> bool:
    """Return whether a client's proof is valid, in constant time.

    `exchanged` are the messages that the proof covers, joined by commas.
    """
    signature = _hmac(mechanism, keys.stored_key, exchanged)
    if len(proof) != len(signature):
        return False
    client_key = bytes(a ^ b for a, b in zip(proof, signature, strict=True))
    return are_same(_hash(mechanism, client_key), keys.stored_key)


def server_signature(mechanism: int, keys: ScramKeys, exchanged: bytes) -> bytes:
    """Return the signature that proves to a client that the server has the keys."""
    return _hmac(mechanism, keys.server_key, exchanged)


def parse_client_first(message: bytes) -> ClientFirst:
    """Parse the client's first message."""
    found = _CLIENT_FIRST.fullmatch(_text(message))
    if found is None:
        raise MalformedFrameError("malformed first message of a SCRAM client")
    extensions = found["extensions"].lower().split(",")
    return ClientFirst(
        user=_unescaped(found["name"]),
        authorization_id=_unescaped(found["authzid"] or ""),
        nonce=found["nonce"],
        bare=found["bare"],
        is_by_token="tokenauth=true" in extensions,
    )


def parse_client_final(message: bytes) -> ClientFinal:
    """Parse the client's final message, which may not request channel binding."""
    found = _CLIENT_FINAL.fullmatch(_text(message))
    if found is None:
        raise MalformedFrameError("malformed final message of a SCRAM client")
    if not _base64(found["channel"]).startswith(b"n,"):
        raise MalformedFrameError("a SCRAM client uses channel binding, which was not offered")
    return ClientFinal(found["nonce"], _base64(found["proof"]), found["unproved"])


def server_first(nonce: str, keys: ScramKeys) -> str:
    """Return the server's first message; `nonce` is the client's nonce followed by the server's."""
    salt = base64.b64encode(keys.salt).decode("ascii")
    return f"r={nonce},s={salt},i={keys.iterations}"


def server_final(signature: bytes) -> str:
    """Return the server's final message."""
    return "v=" + base64.b64encode(signature).decode("ascii")


def client_first(user: str, nonce: str, *, by_token: bool = False) -> str:
    """Return the client's first message without its header (`n,,`).

    With `by_token`, the user is a delegation token's id.
    """
    return f"n={_escaped(user)},r={nonce}" + (",tokenauth=true" if by_token else "")


def parse_server_first(message: bytes, nonce: str) -> ServerFirst:
    """Parse the server's first message; its nonce must begin with the client's.

    Raises:
        MalformedFrameError: Also for too few or too many iterations.
    """
    found = _SERVER_FIRST.fullmatch(_text(message))
    if found is None:
        raise MalformedFrameError("malformed first message of a SCRAM server")
    if not found["nonce"].startswith(nonce) or found["nonce"] == nonce:
        raise MalformedFrameError("a SCRAM server returned another nonce")
    iterations = int(found["iterations"])
    if not LEAST_ITERATIONS <= iterations <= _MOST_CLIENT_ITERATIONS:
        raise MalformedFrameError(
            f"a SCRAM server wants {iterations} iterations; {LEAST_ITERATIONS} to "
            f"{_MOST_CLIENT_ITERATIONS} are allowed"
        )
    return ServerFirst(found["nonce"], _base64(found["salt"]), iterations, message.decode())


def client_final(mechanism: int, salted: bytes, first: str, answer: ServerFirst) -> ClientProof:
    """Return the client's final message, and the response that it must receive.

    `first` is the result of `client_first`, `answer` the server's first message.
    """
    unproved = f"c=biws,r={answer.nonce}"
    exchanged = f"{first},{answer.text},{unproved}".encode()
    client_key = _hmac(mechanism, salted, b"Client Key")
    signature = _hmac(mechanism, _hash(mechanism, client_key), exchanged)
    proof = bytes(a ^ b for a, b in zip(client_key, signature, strict=True))
    server_key = _hmac(mechanism, salted, b"Server Key")
    expected = server_final(_hmac(mechanism, server_key, exchanged))
    message = f"{unproved},p={base64.b64encode(proof).decode('ascii')}"
    return ClientProof(message.encode(), expected.encode())


def _text(message: bytes) -> str:
    if len(message) > _LONGEST_MESSAGE_BYTES:
        raise MalformedFrameError(f"a SCRAM message of {len(message)} bytes is too long")
    try:
        return message.decode()
    except UnicodeDecodeError:
        raise MalformedFrameError("a SCRAM message is not UTF-8") from None


def _escaped(name: str) -> str:
    return name.replace("=", "=3D").replace(",", "=2C")


def _unescaped(name: str) -> str:
    return name.replace("=2C", ",").replace("=3D", "=")


def _base64(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except binascii.Error:
        raise MalformedFrameError("a SCRAM message has invalid base64") from None


def _hash(mechanism: int, data: bytes) -> bytes:
    return digest(_HASHES[mechanism], data)


def _hmac(mechanism: int, key: bytes, data: bytes) -> bytes:
    return keyed_digest(_HASHES[mechanism], key, data)
