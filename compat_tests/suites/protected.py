"""A broker with short logins over TLS, for suites that run as alice."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Final

from compat_tests.security.listeners import KafkaOfListeners, WirebrokerOfListeners, protocol_map
from compat_tests.security.secured import PASSWORD, sasl_settings
from tests.support.brokers import java_start
from tests.support.security.tls_files import tls_configs
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    Protected = KafkaOfListeners | WirebrokerOfListeners

LOGIN_ENDS_MS: Final = 4000
_PROTOCOLS: Final = {"LOGIN": "SASL_SSL"}


class _Kafka(KafkaOfListeners):
    protocols: ClassVar[Mapping[str, str]] = _PROTOCOLS


class _Wirebroker(WirebrokerOfListeners):
    protocols: ClassVar[Mapping[str, str]] = _PROTOCOLS


def protected_broker(kind: str, folder: Path, settings: Mapping[str, str]) -> Protected:
    folder.mkdir(parents=True, exist_ok=True)
    all_settings = {
        **tls_configs(folder),
        **sasl_settings("login"),
        "listener.security.protocol.map": protocol_map(_PROTOCOLS),
        "connections.max.reauth.ms": str(LOGIN_ENDS_MS),
        **settings,
    }
    if kind == "apache":
        return _Kafka(folder / "broker", all_settings, java_options=java_start.options())
    return _Wirebroker(folder / "broker", all_settings)


def address_of(broker: Protected) -> str:
    return f"{HOST}:{broker.ports['LOGIN']}"


def librdkafka_login(folder: Path) -> dict[str, str]:
    return {
        "security.protocol": "sasl_ssl",
        "ssl.ca.location": str(folder / "authority.pem"),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }
