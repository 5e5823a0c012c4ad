"""Authentication of clients on all listeners."""

from __future__ import annotations

import base64
import logging
import os
from typing import TYPE_CHECKING

from wirebroker.base.threads import Work, in_thread
from wirebroker.codecs.hashes import digest
from wirebroker.codecs.scram import SCRAM_NUMBERS
from wirebroker.security.sasl.gssapi_mechanism import GssapiMechanism
from wirebroker.security.sasl.kerberos import Acceptor
from wirebroker.security.sasl.login_queue import LoginQueue
from wirebroker.security.sasl.mechanisms import PlainMechanism, ScramMechanism
from wirebroker.security.sasl.oauth_mechanism import OAuthMechanism
from wirebroker.security.sasl.sasl import SaslGuard
from wirebroker.security.sasl.token_logins import TokenLogins
from wirebroker.security.tokens.key_refresh import KeyRefresh
from wirebroker.security.tokens.tokens import TokenChecks

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from wirebroker.base.clock import Clock
    from wirebroker.config.listeners.listeners import ListenerConfig
    from wirebroker.config.security.kerberos import KerberosKeys
    from wirebroker.config.security.oauth import OAuthSettings
    from wirebroker.config.security.sasl import SaslSettings
    from wirebroker.coordinator.controller.image.cluster_image import BrokerImage, ClusterImage
    from wirebroker.net.dispatch import Dispatcher
    from wirebroker.security.sasl.mechanisms import Mechanism

logger = logging.getLogger("wirebroker.security")


class SaslState:
    """Keys, users and tokens for the authentication of clients.

    Attributes:
        dispatcher: Serves authenticated clients.
        image: Returns the cluster image, with SCRAM users and delegation tokens.
    """

    __slots__ = (
        "_acceptors",
        "_checks",
        "_doors",
        "_key",
        "_refreshes",
        "_salt_key",
        "_tokens",
        "clock",
        "dispatcher",
        "image",
        "logins",
    )

    def __init__(
        self,
        dispatcher: Dispatcher,
        image: Callable[[], ClusterImage],
        cluster_id: str,
        clock: Clock,
        *,
        token_secret: str | None = None,
        checks: dict[OAuthSettings, TokenChecks] | None = None,
    ) -> None:
        self.dispatcher = dispatcher
        self.image = image
        self.clock = clock
        self.logins = LoginQueue()
        self._key = os.urandom(32)
        self._salt_key = SaltKey(image, cluster_id)
        self._tokens = TokenLogins(token_secret, image, clock, salt_key=self._salt_key.find)
        self._doors: dict[str, SaslSettings] = {}
        self._checks = checks or {}
        self._acceptors: dict[KerberosKeys, Acceptor] = {}
        # For keys of web servers.
        self._refreshes: dict[OAuthSettings, KeyRefresh] = {}

    def use_listeners(self, listeners: Iterable[ListenerConfig]) -> None:
        """Apply settings from the next connection on."""
        self._doors = {
            listener.name: listener.sasl for listener in listeners if listener.sasl is not None
        }
        oauth_settings = {sasl.oauth for sasl in self._doors.values() if sasl.oauth is not None}
        # Keep the keys of unchanged settings.
        self._checks = {
            settings: self._checks.get(settings) or _checks(settings, self.clock)
            for settings in oauth_settings
        }
        self._refresh({settings for settings in oauth_settings if settings.keys_url is not None})
        keys = [sasl.kerberos.keys for sasl in self._doors.values() if sasl.kerberos is not None]
        self._acceptors = {key: self._acceptors.get(key) or Acceptor(key) for key in keys}

    def close(self) -> None:
        """Stop reading keys."""
        self._refresh(set())

    def _refresh(self, oauth_settings: set[OAuthSettings]) -> None:
        for settings in self._refreshes.keys() - oauth_settings:
            self._refreshes.pop(settings).close()
        for settings in oauth_settings - self._refreshes.keys():
            self._refreshes[settings] = KeyRefresh(self._checks[settings], settings)

    def guard(self, listener_name: str) -> SaslGuard | None:
        """Return the guard of a new connection; None if it needs no authentication."""
        settings = self._doors.get(listener_name)
        return None if settings is None else SaslGuard(self, settings)

    def mechanism(self, name: str, settings: SaslSettings) -> Mechanism:
        """Return a new instance of an enabled mechanism."""
        if name == "OAUTHBEARER":
            assert settings.oauth is not None, "it is enabled"
            # A connection may be older than the current settings.
            checks = self._checks.get(settings.oauth) or _checks(settings.oauth, self.clock)
            return OAuthMechanism(checks)
        if name == "GSSAPI":
            assert settings.kerberos is not None, "it is enabled"
            keys = settings.kerberos.keys
            acceptor = self._acceptors.get(keys) or Acceptor(keys)
            return GssapiMechanism(acceptor, settings.kerberos.rules)
        number = SCRAM_NUMBERS.get(name)
        if number is None:
            return PlainMechanism(settings.passwords, self._key)
        return ScramMechanism(
            number,
            lambda user: self.image().scram_user(user, number),
            token_of=lambda token_id: self._tokens.find(token_id, number),
            forms=lambda: self.image().scram_forms.get(number, {}),
            nonce=base64.urlsafe_b64encode(os.urandom(24)).decode("ascii"),
            salt_key=self._salt_key.find(),
        )


async def read_keys(
    listeners: Iterable[ListenerConfig], clock: Clock
) -> dict[OAuthSettings, TokenChecks]:
    """Read keys of tokens and of Kerberos, to report errors at start; return the checks of tokens.

    Raises:
        ConfigError: Keys cannot be read, or a library is missing.
    """
    checks: dict[OAuthSettings, TokenChecks] = {}
    for sasl in (listener.sasl for listener in listeners if listener.sasl is not None):
        if sasl.oauth is not None and sasl.oauth not in checks:
            checks[sasl.oauth] = _checks(sasl.oauth, clock)
            await in_thread(Work.KEYS, checks[sasl.oauth].load)
        if sasl.kerberos is not None:
            await in_thread(Work.LOGINS, Acceptor(sasl.kerberos.keys).load)
    return checks


def _checks(settings: OAuthSettings, clock: Clock) -> TokenChecks:
    if not settings.are_signed:
        logger.warning(
            "OAUTHBEARER tokens are not signed: clients can claim any identity "
            "(set sasl.oauthbearer.jwks.endpoint.url)"
        )
    return TokenChecks(settings, clock)


class SaltKey:
    """The secret for salts of unknown users: constant, the same on all nodes of a cluster."""

    __slots__ = ("_brokers", "_image", "_key", "_of_cluster")

    def __init__(self, image: Callable[[], ClusterImage], cluster_id: str) -> None:
        self._image = image
        # A prefix that nothing else uses.
        self._of_cluster = digest("sha256", f"salts for nobody in {cluster_id}".encode())
        self._key = self._of_cluster
        # The brokers for which _key was found; they change rarely.
        self._brokers: Mapping[int, BrokerImage] | None = None

    def find(self) -> bytes:
        """Return the key: at least 16 bytes."""
        brokers = self._image().brokers
        if brokers is not self._brokers:
            self._key = _of(brokers) or self._of_cluster
            self._brokers = brokers
        return self._key


def _of(brokers: Mapping[int, BrokerImage]) -> bytes | None:
    """Return the lowest directory id of the first broker that has any."""
    for node_id in sorted(brokers):
        directories = brokers[node_id].log_directories
        if directories:
            return min(directories)
    return None
