r"""The clusters of a console, from flags and from a file.

    users=/etc/wirebroker/console-users

    [production]
    bootstrap.servers=broker1:9093,broker2:9093
    security.protocol=SASL_SSL
    sasl.mechanism=SCRAM-SHA-512
    sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required \
        username="console" password="${file:/etc/wirebroker/console.properties:password}";
    config.providers=file
    config.providers.file.class=org.apache.kafka.common.config.provider.FileConfigProvider

    [test]
    bootstrap.servers=localhost:9092

Each section has Kafka's client settings, in the format of a properties file. Config providers
(KIP-421) keep secrets out of the file. Settings of the console itself (`web_settings.py`) are above
the first section.
"""

from __future__ import annotations

import os
import random
import re
from typing import TYPE_CHECKING, Final, NamedTuple

from wirebroker.client.addresses import addresses_of
from wirebroker.client.errors import ClientError, FlagNames
from wirebroker.client.kafka_client import KafkaClient
from wirebroker.client.security.security import client_security
from wirebroker.config.java.properties import parse_properties
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.sources.sources import local_java_options, without_placeholders
from wirebroker.console.model.http_settings import http_settings
from wirebroker.security.login.outgoing import connection_method

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from wirebroker.base.clock import Clock

_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_SECTION: Final = re.compile(r"\s*\[([^\]]*)\]\s*")
_BOOTSTRAP: Final = "bootstrap.servers"
_MOST_FILE_BYTES: Final = 1 << 20
# A request that takes longer counts as a failure, which the pages show. Viewers wait for it, so it
# is shorter than other clients' default.
_TIMEOUT: Final = "request.timeout.ms"
_TIMEOUT_MS: Final = "10000"
_TIMEOUT_RANGE_MS: Final = (100, 120_000)
# Of a single batch, too (client/records/record_connections.py).
_MOST_RESPONSE_BYTES: Final = 48 << 20
_CLIENT_ID: Final = "wirebroker-console"
_FLAG_NAMES: Final = FlagNames(
    address=f"{_BOOTSTRAP} of this cluster",
    tls="security.protocol=SSL or SASL_SSL",
    trust="ssl.truststore.location",
    login="security.protocol=SASL_SSL or SASL_PLAINTEXT",
)


class ClusterSettings(NamedTuple):
    """A cluster of the console.

    Attributes:
        name: Up to 64 letters, digits, `.`, `_` and `-`; part of the pages' addresses.
        bootstrap: `host:port,…`.
        properties: Settings of a Kafka client, by name.
    """

    name: str
    bootstrap: str
    properties: Mapping[str, str]


def cluster_of_flag(text: str) -> ClusterSettings:
    """Parse `NAME=HOST:PORT,…`.

    Raises:
        ValueError: It has another form.
    """
    name, equals, bootstrap = text.partition("=")
    if not equals or not bootstrap.strip():
        raise ValueError(f"{text!r} is not a cluster: write NAME=HOST:PORT")
    return _checked(ClusterSettings(name.strip(), bootstrap.strip(), {}))


class ConsoleFile(NamedTuple):
    """The content of a console's file.

    Attributes:
        settings: Of the console itself, by name.
        clusters: Of its sections.
    """

    settings: Mapping[str, str]
    clusters: list[ClusterSettings]


def read_console_file(path: Path) -> ConsoleFile:
    """Read a file of clusters and of settings of the console.

    Raises:
        ValueError: It has another form, or a setting is invalid.
        OSError: It cannot be read.
    """
    data = path.read_bytes()
    if len(data) > _MOST_FILE_BYTES:
        raise ValueError(f"{path} is larger than {_MOST_FILE_BYTES >> 20} MiB")
    settings: Mapping[str, str] = {}
    clusters: dict[str, ClusterSettings] = {}
    for name, lines in _sections(data.decode("latin-1")):
        part = "the part above the first section" if name is None else f"section [{name}]"
        if name in clusters:
            raise ValueError(f"{path} has two sections [{name}]")
        try:
            values = without_placeholders(parse_properties("\n".join(lines)), os.environ)
            if name is None:
                settings = values
            else:
                clusters[name] = cluster_of_properties(name, values)
        except (ValueError, ConfigError) as error:
            raise ValueError(f"{part} of {path} cannot be used: {error}") from None
    return ConsoleFile(settings, list(clusters.values()))


def _sections(text: str) -> Iterator[tuple[str | None, list[str]]]:
    """Yield the lines of each section by its name; None for those above the first one."""
    name: str | None = None
    lines: list[str] = []
    is_continued = False
    for line in text.splitlines():
        match = None if is_continued else _SECTION.fullmatch(line)
        if match is None:
            lines.append(line)
        else:
            yield name, lines
            name, lines = match[1].strip(), []
        is_continued = (len(line) - len(line.rstrip("\\"))) % 2 == 1
    yield name, lines


def cluster_of_properties(name: str, settings: Mapping[str, str]) -> ClusterSettings:
    """Return a cluster with a client's settings.

    Raises:
        ValueError: It has no bootstrap.servers, or they or the name are invalid.
    """
    if not settings.get(_BOOTSTRAP):
        raise ValueError(f"{_BOOTSTRAP} is missing")
    return _checked(ClusterSettings(name, settings[_BOOTSTRAP], settings))


def with_http(cluster: ClusterSettings, added: Mapping[str, str]) -> ClusterSettings:
    """Return a cluster with additional settings for HTTP, which override its own.

    Raises:
        ValueError: A URL is invalid.
    """
    return _checked(cluster._replace(properties={**cluster.properties, **added}))


def _checked(settings: ClusterSettings) -> ClusterSettings:
    if not _NAME.fullmatch(settings.name):
        raise ValueError(
            f"{settings.name!r} is not a cluster's name: use up to 64 letters, digits, . _ and -"
        )
    addresses_of(settings.bootstrap)
    http_settings(settings.properties)
    return settings


def _timeout_ms(properties: Mapping[str, str]) -> int:
    text = properties.get(_TIMEOUT, _TIMEOUT_MS).strip()
    least, most = _TIMEOUT_RANGE_MS
    if not (text.isascii() and text.isdigit() and least <= int(text) <= most):
        raise ValueError(f"{_TIMEOUT}={text} is not a number from {least} to {most}")
    return int(text)


def open_client(settings: ClusterSettings, clock: Clock) -> KafkaClient:
    """Return a client of a cluster, which connects when it is used.

    Raises:
        ClientError: A setting is invalid, or a file of keys or certificates cannot be used.
    """
    try:
        security = client_security(settings.properties, local_java_options(os.environ))
        connection = connection_method(security)
        addresses = addresses_of(settings.bootstrap)
        timeout_ms = _timeout_ms(settings.properties)
    except (ConfigError, ValueError) as error:
        raise ClientError(
            f"the settings of cluster {settings.name} cannot be used: {error}"
        ) from None
    return KafkaClient(
        addresses,
        timeout_s=timeout_ms / 1000,
        dialer=connection.dialer,
        handshake=connection.handshake,
        clock=clock,
        random=random.Random(),  # noqa: S311 - for pauses
        client_id=_CLIENT_ID,
        flags=_FLAG_NAMES,
        max_response_bytes=_MOST_RESPONSE_BYTES,
    )
