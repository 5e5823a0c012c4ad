"""Certificates for tests, made once per process and written on demand."""

from __future__ import annotations

import functools
import ssl
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from wirebroker.base.clock import SystemClock
from wirebroker.security.tls.certificates import Authority

if TYPE_CHECKING:
    from pathlib import Path

HOSTS = ("localhost", "127.0.0.1")


OURS = "test authority"


def _now() -> datetime:
    return datetime.fromtimestamp(SystemClock().now_ms() / 1000, UTC)


@functools.cache
def _authority(name: str) -> Authority:
    return Authority.make(name, _now())


def authority(name: str = OURS) -> Authority:
    return _authority(name)


@functools.cache
def certificate(
    name: str = "broker",
    *,
    hosts: tuple[str, ...] = HOSTS,
    days: int = 30,
    by: str = OURS,
) -> str:
    return authority(by).issue(name, _now(), hosts=hosts, days=days)


def client_certificate(name: str = "alice", *, days: int = 30, by: str = OURS) -> str:
    return certificate(name, hosts=(), days=days, by=by)


def write(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text)
    return str(path)


def tls_configs(folder: Path, **overrides: str) -> dict[str, str]:
    """Return configs of a broker with TLS listeners; `_` in names of `overrides` means `.`."""
    folder.mkdir(exist_ok=True)
    return {
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": write(folder, "broker.pem", certificate()),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": write(folder, "authority.pem", authority().certificate),
        **{name.replace("_", "."): value for name, value in overrides.items()},
    }


def client_side(folder: Path, own: str | None = None, *, by: str = OURS):
    """Return the context of a client that trusts an authority, optionally with a certificate."""
    context = ssl.create_default_context(cadata=authority(by).certificate)
    if own is not None:
        context.load_cert_chain(write(folder, "client.pem", own))
    return context
