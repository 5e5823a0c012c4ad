"""Settings name regular files; others are refused without waiting."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import pytest

from tests.support.security.tls_files import certificate, write
from wirebroker.config.rows.row import ConfigError
from wirebroker.config.security.tls import StoreSettings, TlsSettings
from wirebroker.config.sources.regular_file import check_regular, read_regular
from wirebroker.security.sasl.kerberos import _check_keytab
from wirebroker.security.tls.key_stores import read_store
from wirebroker.security.tls.tls_contexts import server_side

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def places(tmp_path: Path) -> dict[str, str]:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to(tmp_path / "fifo")
    write(tmp_path, "long", "x" * 11)
    return {
        str(tmp_path / "fifo"): "not a regular file",
        str(tmp_path / "link"): "not a regular file",
        str(tmp_path): "not a regular file",
        "/dev/zero": "not a regular file",
        f"{tmp_path}/a\0b": "the path contains a NUL character",
        str(tmp_path / "none"): "No such file",
        str(tmp_path / "long"): "longer than 10 bytes",
    }


def test_only_regular_files_up_to_the_limit_are_read(places: dict[str, str]) -> None:
    for path, why in places.items():
        with pytest.raises(OSError, match=why):
            read_regular(path, 10)


def test_a_regular_file_is_read_through_a_link(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(write(tmp_path, "file", "text"))
    assert read_regular(tmp_path / "link", 4) == b"text"
    check_regular(tmp_path / "link")


def test_stores_and_keytabs_must_be_regular_files(places: dict[str, str]) -> None:
    for path, why in places.items():
        if "longer" in why:
            continue
        with pytest.raises(ConfigError, match=why):
            read_store(StoreSettings(type="PEM", location=path, name="ssl.keystore"))
        with pytest.raises(ConfigError, match=why):
            _check_keytab(path)


@pytest.mark.parametrize("client_auth", ["none", "requested", "required"])
def test_a_truststore_that_cannot_be_used_is_refused(tmp_path: Path, client_auth: str) -> None:
    """Even if no client certificate is requested."""
    keys = StoreSettings(type="PEM", location=write(tmp_path, "k", certificate()), name="k")
    trust = StoreSettings(
        type="PEM", location=write(tmp_path, "t", "garbage"), name="ssl.truststore"
    )
    with pytest.raises(ConfigError, match="no certificate"):
        server_side(TlsSettings(keystore=keys, truststore=trust, client_auth=client_auth))
