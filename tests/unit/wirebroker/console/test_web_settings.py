"""Settings of the console: flags, its file, and what is refused off loopback addresses."""

from __future__ import annotations

from pathlib import Path

import pytest

from wirebroker.console.web_settings import (
    ROWS,
    WebSettingError,
    WebSettings,
    audit_file,
    web_settings,
)

USERS = {"users": "/etc/users"}
TLS = {"tls-cert": "/etc/cert.pem", "tls-key": "/etc/key.pem"}


def test_each_field_has_a_row():
    assert {row.field for row in ROWS} == set(WebSettings._fields)


def test_flags_have_precedence_over_the_file():
    file = {"port": "80", "read-only": "true", "allowed-host": "a.example, b.example"} | USERS
    flags = {"port": 8080, "users": None, "allowed_hosts": (), "host": "localhost"}
    assert web_settings(flags, file) == WebSettings(
        port=8080,
        is_read_only=True,
        allowed_hosts=("a.example", "b.example"),
        users=Path("/etc/users"),
    )
    assert web_settings({"allowed_hosts": ("c.example",)}, file).allowed_hosts == ("c.example",)
    assert web_settings({}, USERS).users == Path("/etc/users")


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_addresses_need_nothing_else(host):
    assert web_settings({"host": host}, {}).host == host


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"host": "0.0.0.0"}, r"needs --users FILE: .*console-user set"),
        ({"host": "10.1.2.3"} | TLS, "needs --users FILE"),
        ({"host": "10.1.2.3"} | USERS, "needs --tls-cert FILE, or --behind-proxy"),
        ({"host": "0.0.0.0"} | USERS | TLS, "needs --allowed-host NAME"),
        ({"host": "::"} | USERS | {"behind-proxy": "true"}, "needs --allowed-host NAME"),
        ({"host": ""}, "write an address"),
        ({"host": "box.example"}, "write an address"),
        ({"host": "127.0.0.1:80"}, "write an address"),
        ({"tls-key": "/etc/key.pem"}, "needs --tls-cert"),
        ({"behind-proxy": "true"} | TLS, "the proxy adds TLS"),
        ({"behind-proxy": "true"}, r"--behind-proxy needs --users FILE: .*console-user set"),
        ({"allowed-host": "a.example"}, r"--allowed-host needs --users FILE"),
        ({"allowed-host": "a.example:8443"} | USERS, "without scheme, port and path"),
        ({"allowed-host": "[::1]:8443"} | USERS, "without scheme, port and path"),
        ({"allowed-host": "https://a.example"} | USERS, "without scheme, port and path"),
        ({"behind-proxy": "yes"}, "write true or false"),
        ({"port": "65536"}, "write 0 to 65535"),
        ({"port": "x"}, "write 0 to 65535"),
        ({"bootstrap.servers": "x:1"}, r"below its name, such as \[production\]"),
        ({"allowed-host": ",".join(["a"] * 101)}, "more than 100"),
    ],
)
def test_other_settings_are_refused_with_what_to_do(settings, reason):
    with pytest.raises(WebSettingError, match=reason):
        web_settings({}, settings)


@pytest.mark.parametrize(
    "settings",
    [
        {"host": "10.1.2.3"} | USERS | TLS,
        {"host": "10.1.2.3", "tls-cert": "/etc/cert.pem"} | USERS,
        {"host": "10.1.2.3", "behind-proxy": "true"} | USERS,
        {"host": "0.0.0.0", "allowed-host": "a.example, ::1, [fe80::1]"} | USERS | TLS,
        {"host": "127.0.0.1", "behind-proxy": "true", "allowed-host": "a.example"} | USERS,
    ],
)
def test_other_addresses_need_users_and_tls(settings):
    assert web_settings({}, settings).users is not None


def test_the_audit_log_has_a_default(monkeypatch, tmp_path):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert audit_file(WebSettings()) == tmp_path / "wirebroker" / "console-audit.log"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert audit_file(WebSettings()).parts[-4:-1] == (".local", "state", "wirebroker")
    assert audit_file(WebSettings(audit_log=tmp_path)) == tmp_path


def test_a_user_without_a_home_must_set_the_audit_log(monkeypatch):
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(WebSettingError, match="set --audit-log FILE"):
        audit_file(WebSettings())
