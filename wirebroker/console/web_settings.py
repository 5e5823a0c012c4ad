"""Settings of the console itself: its address, its users, and its audit log.

Each is a flag of `wirebroker console` and a line `NAME=VALUE` above the first section of its file
(`model/settings.py`); flags have precedence. `ROWS` is the only list of them.
"""

from __future__ import annotations

import ipaddress
import os
import re
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DEFAULT_HOST: Final = "127.0.0.1"
DEFAULT_PORT: Final = 8989
_LOCAL_NAME: Final = "localhost"
_MOST_NAMES: Final = 100
_HOST_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,255}")


class WebSettings(NamedTuple):
    """Settings of the console; the rows below describe them."""

    host: str = DEFAULT_HOST
    port: int = DEFAULT_PORT
    tls_cert: Path | None = None
    tls_key: Path | None = None
    is_behind_proxy: bool = False
    allowed_hosts: tuple[str, ...] = ()
    users: Path | None = None
    tokens: Path | None = None
    is_read_only: bool = False
    audit_log: Path | None = None


DEFAULTS: Final = WebSettings()


class SettingRow(NamedTuple):
    """A setting.

    Attributes:
        name: The flag without `--`, and the name in the file.
        field: The field of WebSettings.
        kind: `text`, `port`, `file`, `yes-no`, or `names` for a flag that can be repeated.
        metavar: Of the flag.
        help: Of the flag.
    """

    name: str
    field: str
    kind: str
    metavar: str
    help: str


ROWS: Final = (
    SettingRow(
        "host",
        "host",
        "text",
        "HOST",
        "Address to listen on; only loopback works without --users and TLS. [default: 127.0.0.1]",
    ),
    SettingRow(
        "port",
        "port",
        "port",
        "N",
        "Port to listen on; 0 selects a free one. [default: 8989]",
    ),
    SettingRow(
        "tls-cert",
        "tls_cert",
        "file",
        "FILE",
        "Certificate chain for HTTPS (PEM), and its key if --tls-key is not given.",
    ),
    SettingRow("tls-key", "tls_key", "file", "FILE", "Private key of the certificate (PEM)."),
    SettingRow(
        "behind-proxy",
        "is_behind_proxy",
        "yes-no",
        "",
        "A reverse proxy adds TLS and the client's address (X-Forwarded-For); needs --users.",
    ),
    SettingRow(
        "allowed-host",
        "allowed_hosts",
        "names",
        "NAME",
        "Host name, without port, by which browsers reach the console; needs --users (repeatable).",
    ),
    SettingRow(
        "users",
        "users",
        "file",
        "FILE",
        "Require a login by a user of this file (wirebroker console-user).",
    ),
    SettingRow(
        "tokens",
        "tokens",
        "file",
        "FILE",
        "Serve the HTTP interface for the tokens of this file (wirebroker console-token).",
    ),
    SettingRow("read-only", "is_read_only", "yes-no", "", "Allow no changes, whatever the role."),
    SettingRow(
        "audit-log",
        "audit_log",
        "file",
        "FILE",
        "Append logins and changes to this file. [default:"
        " ~/.local/state/wirebroker/console-audit.log]",
    ),
)


class WebSettingError(ValueError):
    """A setting that cannot be used; the message says what to do."""


def web_settings(flags: Mapping[str, Any], file: Mapping[str, str]) -> WebSettings:
    """Return checked settings.

    Args:
        flags: Values by field, None (or an empty tuple) for a flag that is not given.
        file: Texts of the console's file by name.

    Raises:
        WebSettingError: A setting is unknown, has another form, or does not go with the others.
    """
    rows = {row.name: row for row in ROWS}
    unknown = [name for name in file if name not in rows]
    if unknown:
        known = ", ".join(rows)
        raise WebSettingError(
            f"{unknown[0]} is not a setting of the console: write those of a cluster below its"
            f" name, such as [production]; settings of the console: {known}"
        )
    values: dict[str, Any] = {
        row.field: _parsed(row, file[row.name]) for row in ROWS if row.name in file
    }
    values |= {field: value for field, value in flags.items() if value not in (None, ())}
    settings = WebSettings(**values)
    if settings.host == _LOCAL_NAME:
        settings = settings._replace(host=DEFAULT_HOST)
    _check(settings)
    return settings


def _parsed(row: SettingRow, text: str) -> Any:
    text = text.strip()
    if row.kind == "yes-no":
        if text not in {"true", "false"}:
            raise WebSettingError(f"{row.name}={text} cannot be used: write true or false")
        return text == "true"
    if row.kind == "port":
        if not (text.isascii() and text.isdigit() and len(text) <= 5 and int(text) <= 65535):
            raise WebSettingError(f"{row.name}={text} cannot be used: write 0 to 65535")
        return int(text)
    if row.kind == "names":
        return tuple(name.strip() for name in text.split(",") if name.strip())
    if row.kind == "file":
        from pathlib import Path  # noqa: PLC0415 - a tenth of a verb's time

        return Path(text)
    return text


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach an address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _check(settings: WebSettings) -> None:
    try:
        address = ipaddress.ip_address(settings.host)
    except ValueError:
        raise WebSettingError(
            f"--host {settings.host} cannot be used: write an address of this machine, such as"
            f" {DEFAULT_HOST}"
        ) from None
    if settings.tls_key is not None and settings.tls_cert is None:
        raise WebSettingError("--tls-key needs --tls-cert FILE")
    if settings.tls_cert is not None and settings.is_behind_proxy:
        raise WebSettingError("--behind-proxy cannot be used with --tls-cert: the proxy adds TLS")
    _check_names(settings)
    if settings.users is None and (settings.is_behind_proxy or settings.allowed_hosts):
        flag = "--behind-proxy" if settings.is_behind_proxy else "--allowed-host"
        raise WebSettingError(
            f"{flag} needs --users FILE: other machines can reach the console by its proxy or"
            " tunnel, so it requires a login (write the file with `wirebroker console-user set`)"
        )
    if address.is_loopback:
        return
    if settings.users is None:
        raise WebSettingError(
            f"--host {settings.host} needs --users FILE: other machines can reach it, so it"
            " requires a login (write the file with `wirebroker console-user set`)"
        )
    if settings.tls_cert is None and not settings.is_behind_proxy:
        raise WebSettingError(
            f"--host {settings.host} needs --tls-cert FILE, or --behind-proxy if a proxy adds TLS:"
            " passwords must not be sent in plain text"
        )
    if address.is_unspecified and not settings.allowed_hosts:
        raise WebSettingError(
            f"--host {settings.host} needs --allowed-host NAME, the name by which browsers reach"
            " the console"
        )


def _check_names(settings: WebSettings) -> None:
    if len(settings.allowed_hosts) > _MOST_NAMES:
        raise WebSettingError(f"--allowed-host is given more than {_MOST_NAMES} times")
    for name in settings.allowed_hosts:
        if not _is_host(name):
            raise WebSettingError(
                f"--allowed-host {name} cannot be used: write a host name or address, without"
                " scheme, port and path"
            )


def _is_host(name: str) -> bool:
    try:
        ipaddress.ip_address(name.removeprefix("[").removesuffix("]"))
    except ValueError:
        return _HOST_NAME.fullmatch(name) is not None
    return True


def audit_file(settings: WebSettings) -> Path:
    """Return the file of the audit log.

    Raises:
        WebSettingError: None is set, and the user has no home.
    """
    if settings.audit_log is not None:
        return settings.audit_log
    from pathlib import Path  # noqa: PLC0415 - a tenth of a verb's time

    state = os.environ.get("XDG_STATE_HOME")
    try:
        folder = Path(state) if state else Path.home() / ".local" / "state"
    except RuntimeError:
        raise WebSettingError(
            "this user has no home folder for the audit log: set --audit-log FILE"
        ) from None
    return folder / "wirebroker" / "console-audit.log"
