"""Credentials for the brokers of listeners.py, for each way to log in."""

from __future__ import annotations

import base64
import dataclasses
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from compat_tests.security.secured import MECHANISMS, PASSWORD
from tests.support.security.tls_files import client_certificate, write
from tests.support.tools.ports import HOST
from wirebroker.base.clock import SystemClock

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.security.listeners import Guarded

TOKENS_OVER_TLS: Final = "OAUTHBEARER over TLS"
OVER_TLS: Final = (*MECHANISMS, TOKENS_OVER_TLS)
WAYS: Final = (*OVER_TLS, "OAUTHBEARER", "certificate")
_MODULES = "org.apache.kafka.common.security"


@dataclass(frozen=True)
class Login:
    """An address and credentials; empty fields are unused.

    Attributes:
        ca: A PEM file, for TLS connections.
        own: A PEM file with key and certificate.
    """

    address: str
    mechanism: str = ""
    user: str = ""
    password: str = ""
    token: str = ""
    ca: str = ""
    own: str = ""

    @property
    def protocol(self) -> str:
        return f"{'SASL_' if self.mechanism else ''}{'SSL' if self.ca else 'PLAINTEXT'}"

    def as_properties(self) -> str:
        lines = [f"security.protocol={self.protocol}"]
        if self.ca:
            lines += ["ssl.truststore.type=PEM", f"ssl.truststore.location={self.ca}"]
        if self.own:
            lines += ["ssl.keystore.type=PEM", f"ssl.keystore.location={self.own}"]
        if self.mechanism:
            lines += [f"sasl.mechanism={self.mechanism}", f"sasl.jaas.config={self._jaas()}"]
        return "\n".join([*lines, ""])

    def of_librdkafka(self) -> dict[str, str]:
        """Return settings of librdkafka's clients, with a mechanism and TLS."""
        settings = {
            "security.protocol": self.protocol,
            "ssl.ca.location": self.ca,
            "sasl.mechanism": self.mechanism,
        }
        if self.mechanism == "OAUTHBEARER":
            return settings | {
                "enable.sasl.oauthbearer.unsecure.jwt": "true",
                "sasl.oauthbearer.config": f"principalClaimName={self._claim} principal=alice",
            }
        return settings | {"sasl.username": self.user, "sasl.password": self.password}

    @property
    def _claim(self) -> str:
        # Without a subject, a broker cannot identify the token's user.
        return "sub" if self.user else "other"

    def _jaas(self) -> str:
        if self.mechanism == "OAUTHBEARER":
            return (
                f"{_MODULES}.oauthbearer.OAuthBearerLoginModule required "
                f'unsecuredLoginPrincipalClaimName="{self._claim}" '
                f'unsecuredLoginStringClaim_{self._claim}="alice";'
            )
        kind = "plain.Plain" if self.mechanism == "PLAIN" else "scram.Scram"
        return (
            f"{_MODULES}.{kind}LoginModule required "
            f'username="{self.user}" password="{self.password}";'
        )


def logins(broker: Guarded, folder: Path, way: str) -> tuple[Login, Login]:
    """Return a valid and an invalid login.

    Args:
        broker: The broker.
        folder: Contains its CA certificate.
        way: One of WAYS.
    """
    ca = str(folder / "authority.pem")
    if way == "certificate":
        right = Login(f"{HOST}:{broker.ports['OWN']}", ca=ca)
        own = write(folder, "client.pem", client_certificate())
        return dataclasses.replace(right, own=own), right
    if way in {"OAUTHBEARER", TOKENS_OVER_TLS}:
        listener, ca = ("TOKENS", "") if way == "OAUTHBEARER" else ("TLSTOKENS", ca)
        address = f"{HOST}:{broker.ports[listener]}"
        right = Login(address, "OAUTHBEARER", "alice", token=_token(), ca=ca)
        return right, dataclasses.replace(right, user="", token=_token(-300))
    right = Login(f"{HOST}:{broker.ports['LOGIN']}", way, "alice", PASSWORD, ca=ca)
    return right, dataclasses.replace(right, password="another")


def _token(lives_s: int = 300) -> str:
    now = SystemClock().now_ms() // 1000
    claims = {"sub": "alice", "iat": now - 600, "exp": now + lives_s}
    parts = (json.dumps(part).encode() for part in ({"alg": "none"}, claims))
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts) + "."
