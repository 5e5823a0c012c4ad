"""The console's user in a cluster, as a text for pages and the audit log."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from wirebroker.client.security.security import client_security
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.sources import local_java_options

if TYPE_CHECKING:
    from wirebroker.console.model.settings import ClusterSettings


def kafka_login(settings: ClusterSettings) -> str:
    """Return such as `alice (SCRAM-SHA-512)`, `an OAuth token` or `no login`."""
    try:
        security = client_security(settings.properties, local_java_options(os.environ))
    except (ConfigError, ValueError):
        return "unknown, as the settings cannot be used"
    login = security.login
    if login is not None and login.oauth is not None and not login.oauth.client_id:
        return "an OAuth token"
    if login is not None:
        return f"{login.user} ({login.mechanism})"
    if security.tls is not None and security.tls.keystore.is_there:
        return "a TLS certificate"
    return "no login"
