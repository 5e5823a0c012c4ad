"""Client configs take values from config providers, in verbs and in Kafka's scripts."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click
import pytest

from wirebroker.cli.kafka.plumbing.properties import client_properties, properties_in
from wirebroker.cli.plumbing.security_flags import SecurityFlags, client_settings

if TYPE_CHECKING:
    from pathlib import Path

FILE = (
    "config.providers=env\n"
    "config.providers.env.class=org.apache.kafka.common.config.provider.EnvVarConfigProvider\n"
    "client.id=${env:NAME_OF_CLIENT}\n"
)


def settings_of_verb(file: Path) -> dict[str, str]:
    flags = SecurityFlags(
        client_config=file,
        tls=False,
        tls_ca=None,
        tls_cert=None,
        sasl_user=None,
        sasl_mechanism=None,
    )
    return client_settings(flags)


def test_client_configs_are_resolved(tmp_path, monkeypatch):
    file = tmp_path / "client.properties"
    file.write_text(FILE)
    monkeypatch.setenv("NAME_OF_CLIENT", "c1")
    named = ("group.id=${env:NAME_OF_CLIENT}", "x=${other:A}")
    properties = client_properties(file, named)
    assert [properties[name] for name in ("client.id", "group.id", "x")] == [
        "c1",
        "c1",
        "${other:A}",
    ]
    by_flags = client_properties(None, tuple(FILE.split()))
    assert by_flags["client.id"] == "c1"
    # Other values are sent or used unchanged, as by Kafka's scripts.
    assert properties_in(file)["client.id"] == "${env:NAME_OF_CLIENT}"
    assert settings_of_verb(file)["client.id"] == "c1"
    monkeypatch.delenv("NAME_OF_CLIENT")
    for read in (partial(client_properties, texts=()), settings_of_verb):
        with pytest.raises(click.UsageError, match="NAME_OF_CLIENT is not set"):
            read(file)
