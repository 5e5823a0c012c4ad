"""TLS and SASL of a test broker.

The kit always uses PLAIN: it can then connect after `restore` has replaced the SCRAM users.
"""

from __future__ import annotations

import functools
import secrets
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias, get_args

from wirebroker.base.clock import SystemClock
from wirebroker.codecs.api_keys import ApiKey
from wirebroker.codecs.scram import (
    LEAST_ITERATIONS,
    SALT_BITS,
    SCRAM_NUMBERS,
    salt_of,
    salted_password,
)
from wirebroker.config.java.jaas import LOGIN_MODULES
from wirebroker.config.security.outgoing import Login, OutgoingSecurity
from wirebroker.config.security.tls import StoreSettings, TlsSettings
from wirebroker.security.login.outgoing import connection_method

if TYPE_CHECKING:
    from pathlib import Path

    from wirebroker.client.kafka_client import KafkaClient
    from wirebroker.security.login.outgoing import ConnectionMethod

SaslName: TypeAlias = Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"]

USER: Final = "test"
PASSWORD: Final = "test-secret"  # noqa: S105 - only for tests
_KIT: Final = "wirebroker.testing"
_HOSTS: Final = ("localhost", "127.0.0.1")
_NO_LIBRARY: Final = "tls=True needs the library cryptography: pip install 'wirebroker[tls]'"


class _Certificates(NamedTuple):
    """PEM texts."""

    authority: str
    broker: str  # key and certificate


@functools.cache
def _certificates() -> _Certificates:
    try:
        from wirebroker.security.tls.certificates import Authority  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(_NO_LIBRARY, name=error.name) from None
    now = datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)
    authority = Authority.make("wirebroker.testing", now, days=2)
    return _Certificates(authority.certificate, authority.issue("broker", now, hosts=_HOSTS))


class Protection:
    """The TLS and SASL of one broker.

    Attributes:
        protocol: The listener's security protocol.
        sasl: The clients' mechanism, if any.
        authority: PEM file of the CA; None without TLS.
    """

    def __init__(self, folder: Path, *, tls: bool, sasl: SaslName | None) -> None:
        """Write key and certificates.

        Raises:
            ValueError: The mechanism is unknown.
            ModuleNotFoundError: cryptography is not installed.
        """
        if sasl is not None and sasl not in get_args(SaslName):
            raise ValueError(f"sasl={sasl!r}: it is one of {', '.join(get_args(SaslName))}")
        transport = "SSL" if tls else "PLAINTEXT"
        self.protocol = f"SASL_{transport}" if sasl else transport
        self.sasl = sasl
        self.authority: Path | None = None
        self._keys = folder / "broker.pem"
        self._password = secrets.token_urlsafe(24)
        if tls:
            certificates = _certificates()
            self.authority = folder / "ca.pem"
            self.authority.write_text(certificates.authority)
            self._keys.touch(0o600)
            self._keys.write_text(certificates.broker)

    def settings(self) -> dict[str, str]:
        """Return the broker's settings."""
        settings = {
            "listeners": f"{self.protocol}://127.0.0.1:0",
            "security.inter.broker.protocol": self.protocol,
        }
        if self.authority is not None:
            settings |= {"ssl.keystore.type": "PEM", "ssl.keystore.location": str(self._keys)}
        if self.sasl is not None:
            prefix = f"listener.name.{self.protocol.lower()}"
            users = {USER: PASSWORD, _KIT: self._password}
            options = " ".join(f'user_{name}="{password}"' for name, password in users.items())
            settings |= {
                "sasl.enabled.mechanisms": ",".join(dict.fromkeys((self.sasl, "PLAIN"))),
                "sasl.mechanism.inter.broker.protocol": "PLAIN",
                f"{prefix}.plain.sasl.jaas.config": f"{LOGIN_MODULES['PLAIN']} required {options};",
            }
        return settings

    def way(self) -> ConnectionMethod:
        """Return the kit's transport to the broker."""
        tls = login = None
        if self.authority is not None:
            trusted = StoreSettings(location=str(self.authority), name="ssl.truststore")
            tls = TlsSettings(truststore=trusted)
        if self.sasl is not None:
            login = Login(mechanism="PLAIN", user=_KIT, password=self._password)
        return connection_method(OutgoingSecurity(tls=tls, login=login))

    async def add_user(self, client: KafkaClient) -> None:
        """Create the SCRAM user, if any."""
        number = SCRAM_NUMBERS.get(self.sasl or "")
        if number is None:
            return
        salt = salt_of(secrets.randbits(SALT_BITS))
        user = {
            "name": USER,
            "mechanism": number,
            "iterations": LEAST_ITERATIONS,
            "salt": salt,
            "salted_password": salted_password(number, PASSWORD, salt, LEAST_ITERATIONS),
        }
        await client.request(
            ApiKey.ALTER_USER_SCRAM_CREDENTIALS, {"deletions": [], "upsertions": [user]}
        )
