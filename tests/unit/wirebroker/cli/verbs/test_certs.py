"""`wirebroker certs DIR` creates usable files for a broker and its clients."""

from __future__ import annotations

import ssl
from typing import TYPE_CHECKING

from wirebroker.cli import main as cli
from wirebroker.codecs.distinguished_name import subject_of
from wirebroker.config.security.tls import StoreSettings, TlsSettings
from wirebroker.security.tls.tls_contexts import client_context, server_side

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def shake_hands(folder: Path, host: str) -> str:
    trusted = StoreSettings(location=str(folder / "ca.pem"), name="ssl.truststore")
    broker = StoreSettings(location=str(folder / "broker.pem"))
    client = StoreSettings(location=str(folder / "alice.pem"))
    made = server_side(TlsSettings(keystore=broker, truststore=trusted, client_auth="required"))
    server_ssl_context = made.context
    client_ssl_context = client_context(TlsSettings(keystore=client, truststore=trusted))
    up, down = ssl.MemoryBIO(), ssl.MemoryBIO()
    server = server_ssl_context.wrap_bio(up, down, server_side=True)
    peer = client_ssl_context.wrap_bio(down, up, server_hostname=host)
    for side in (peer, server, peer, server):
        try:
            side.do_handshake()
        except ssl.SSLWantReadError:
            continue
    certificate = server.getpeercert(binary_form=True)
    assert certificate is not None
    return subject_of(certificate).removeprefix("CN=")


def test_created_certificates_can_be_used(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "certs"
    assert cli.run(["certs", str(folder), "--client", "alice", "--host", "kafka.test"]) == 0
    assert shake_hands(folder, "kafka.test") == "alice"
    assert "User:CN=alice" in capsys.readouterr().out
    private = [path.name for path in folder.iterdir() if path.stat().st_mode & 0o077 == 0]
    assert sorted(private) == ["alice.pem", "broker.pem", "ca-key.pem"]
    # A second run keeps the CA and replaces the certificate.
    before = (folder / "broker.pem").read_text(), (folder / "ca.pem").read_text()
    assert cli.run(["certs", str(folder), "--host", "kafka.test"]) == 0
    assert (folder / "broker.pem").read_text() != before[0]
    assert (folder / "ca.pem").read_text() == before[1]
    assert shake_hands(folder, "kafka.test") == "alice"


def test_error_messages_are_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["certs", str(tmp_path), "--client", "../x"]) == 2
    (tmp_path / "ca.pem").write_text("nothing")
    (tmp_path / "ca-key.pem").write_text("nothing")
    assert cli.run(["certs", str(tmp_path)]) == 2
    stderr = capsys.readouterr().err
    assert stderr.count("\n") == 2
    assert "cannot be used" in stderr
