"""rust-rdkafka with TLS and SASL: valid logins work, others get the reason.

Kerberos: nightly_kerberos.py.
"""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import pytest

from compat_tests.conftest import new_topic_name
from compat_tests.security.logins import TOKENS_OVER_TLS, logins
from compat_tests.security.secured import MECHANISMS, PASSWORD
from compat_tests.support import tools_rust
from tests.support.security.tls_files import authority, client_certificate, write
from tests.support.tools.ports import HOST

if TYPE_CHECKING:
    from pathlib import Path

    from compat_tests.security.listeners import Guarded
    from compat_tests.security.logins import Login

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not tools_rust.has_tls(), reason="no Rust, or no headers of OpenSSL's"),
]
_LET_IN_S = 60
_REFUSED_S = 10


def run(broker: Guarded, listener: str, seconds: int, **settings: str) -> str:
    all_settings = {
        "bootstrap.servers": f"{HOST}:{broker.ports[listener]}",
        "log_level": "0",
        **{name.replace("_", "."): value for name, value in settings.items() if value},
    }
    command = [*tools_rust.secured_command(), new_topic_name(), str(seconds)]
    command += [f"{name}={value}" for name, value in all_settings.items()]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=seconds + 60, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def with_tls(broker: Guarded, folder: Path, certificate: str = "", seconds: int = _LET_IN_S) -> str:
    return run(
        broker,
        "OWN",
        seconds,
        security_protocol="ssl",
        ssl_ca_location=str(folder / "authority.pem"),
        ssl_certificate_location=certificate,
        ssl_key_location=certificate,
    )


def with_login(
    broker: Guarded,
    ca: str,
    mechanism: str,
    password: str = PASSWORD,
    seconds: int = _LET_IN_S,
) -> str:
    return run(
        broker,
        "LOGIN",
        seconds,
        security_protocol="sasl_ssl",
        ssl_ca_location=ca,
        sasl_mechanism=mechanism,
        sasl_username="alice",
        sasl_password=password,
    )


def with_token(broker: Guarded, login: Login, seconds: int = _LET_IN_S) -> str:
    return run(
        broker,
        "TLSTOKENS" if login.ca else "TOKENS",
        seconds,
        security_protocol=login.protocol.lower(),
        ssl_ca_location=login.ca,
        sasl_mechanism=login.mechanism,
        sasl_oauthbearer_config=login.token,
    )


@pytest.mark.parametrize("way", ["OAUTHBEARER", TOKENS_OVER_TLS])
def test_token_is_accepted_until_it_expires(guarded: tuple[Guarded, Path], way: str) -> None:
    right, wrong = logins(*guarded, way)
    assert with_token(guarded[0], right) == "read 0\n"
    output = with_token(guarded[0], wrong, _REFUSED_S)
    assert output.startswith("refused"), output
    assert '{"status":"invalid_token"}' in output


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_client_logged_in_over_tls_writes_and_reads(
    guarded: tuple[Guarded, Path], mechanism: str
) -> None:
    broker, folder = guarded
    assert with_login(broker, str(folder / "authority.pem"), mechanism) == "read 0\n"


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_wrong_password_is_reported(guarded: tuple[Guarded, Path], mechanism: str) -> None:
    broker, folder = guarded
    output = with_login(broker, str(folder / "authority.pem"), mechanism, "wrong", _REFUSED_S)
    assert output.startswith("refused"), output
    assert "Authentication failed" in output


def test_client_with_own_certificate_connects(
    guarded: tuple[Guarded, Path], tmp_path: Path
) -> None:
    broker, folder = guarded
    certificate = write(tmp_path, "client.pem", client_certificate())
    assert with_tls(broker, folder, certificate) == "read 0\n"


@pytest.mark.parametrize("whose", ["nobody's", "another authority's", "an expired one"])
def test_client_without_valid_certificate_is_rejected(
    guarded: tuple[Guarded, Path], tmp_path: Path, whose: str
) -> None:
    broker, folder = guarded
    pem = {
        "nobody's": "",
        "another authority's": client_certificate("eve", by="others"),
        "an expired one": client_certificate("late", days=-1),
    }[whose]
    certificate = write(tmp_path, "client.pem", pem) if pem else ""
    assert with_tls(broker, folder, certificate, _REFUSED_S).startswith("refused")


def test_password_is_not_sent_to_untrusted_broker(
    guarded: tuple[Guarded, Path], tmp_path: Path
) -> None:
    broker, _ = guarded
    other_authority = write(tmp_path, "others.pem", authority("others").certificate)
    output = with_login(broker, other_authority, "PLAIN", seconds=_REFUSED_S)
    assert output.startswith("refused"), output
    assert "certificate" in output
