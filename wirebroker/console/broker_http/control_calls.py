"""The clock and the faults of a broker in test mode (`wirebroker serve --test-mode`)."""

from __future__ import annotations

import json
import shlex
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast
from urllib.parse import urlencode

from wirebroker.client.errors import ClientError
from wirebroker.client.http_client import http_request
from wirebroker.codecs.json_text import parse_json
from wirebroker.console.model.http_settings import TEST_URL, TOKEN, http_settings
from wirebroker.testing.test_mode.openapi import CONTROL_PATHS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.console.model.http_settings import HttpSettings
    from wirebroker.console.model.settings import ClusterSettings

_OK: Final = 200
_INVALID: Final = 400
_REFUSED: Final = frozenset({401, 403})
_PATHS: Final = {path.command: path for path in CONTROL_PATHS}


class ControlledClock(NamedTuple):
    """A broker's clock; times are ms since 1970.

    Attributes:
        ahead_ms: How far it is ahead of the machine's; negative if it is behind.
        is_stopped: Whether it stands still.
    """

    now_ms: int
    ahead_ms: int
    is_stopped: bool


class ControlledFault(NamedTuple):
    """A fault of a broker; None as a field matches all requests.

    Attributes:
        left: How often it still acts; None without a limit.
        acted: How often it acted.
    """

    number: int
    kind: str
    api: str | None
    topic: str | None
    client_id: str | None
    error: str | None
    when: str
    delay_ms: int
    left: int | None
    acted: int


def control_settings(cluster: ClusterSettings) -> HttpSettings:
    """Return the settings of a cluster with a broker in test mode.

    Raises:
        ClientError: The console has no address of the test mode.
    """
    found = http_settings(cluster.properties)
    if found.test_url is None:
        raise ClientError(
            f"cluster {cluster.name} has no {TEST_URL}, the address of a broker in test mode"
        )
    return found


async def controlled_clock(cluster: ClusterSettings) -> ControlledClock:
    """Return the broker's clock; see `run_control`."""
    state = await run_control(cluster, "clock", {})
    try:
        now_ms, ahead_ms = int(state["now_ms"]), int(state["passed_ms"]) + int(state["jumped_ms"])
        return ControlledClock(now_ms, ahead_ms, state["frozen_ms"] is not None)
    except (KeyError, TypeError, ValueError) as error:
        raise _not_test_mode(cluster) from error


async def controlled_faults(cluster: ClusterSettings) -> list[ControlledFault]:
    """Return the broker's faults in their order; see `run_control`."""
    rows = await run_control(cluster, "faults", {})
    try:
        return [
            ControlledFault(
                number=int(row["id"]),
                kind=str(row["kind"]),
                api=row["api"],
                topic=row["topic"],
                client_id=row["client_id"],
                error=row["error"],
                when=str(row["when"]),
                delay_ms=int(row["delay_ms"]),
                left=row["left"],
                acted=row["acted"],
            )
            for row in rows
        ]
    except (KeyError, TypeError, ValueError) as error:
        raise _not_test_mode(cluster) from error


async def run_control(cluster: ClusterSettings, command: str, arguments: Mapping[str, Any]) -> Any:
    """Run a command of the test mode, without None arguments, and return its result.

    Raises:
        ClientError: The broker does not respond, refuses, or is not in test mode.
    """
    settings = control_settings(cluster)
    method, url, body = _call(settings, command, arguments)
    reply = await http_request(settings.token, method, url, body)
    if reply.status in _REFUSED:
        raise ClientError(f"{settings.test_url} refuses the token: set {TOKEN}")
    try:
        result: Any = parse_json(reply.body)
    except ValueError as error:
        raise _not_test_mode(cluster) from error
    if reply.status == _INVALID and isinstance(result, dict):
        fields = cast("dict[str, Any]", result)
        raise ClientError(str(fields.get("error", "the broker refuses the command")))
    if reply.status != _OK:
        raise _not_test_mode(cluster)
    return result


def control_line(cluster: ClusterSettings, command: str, arguments: Mapping[str, Any]) -> str:
    """Return the command line that runs a command."""
    settings = control_settings(cluster)
    method, url, body = _call(settings, command, arguments)
    words = ["curl", "-X", method, url]
    if body is not None:
        words += ["-d", body.decode()]
    token = "" if settings.token is None else ' -H "Authorization: Bearer $TOKEN"'
    return shlex.join(words) + token


def _call(
    settings: HttpSettings, command: str, arguments: Mapping[str, Any]
) -> tuple[str, str, bytes | None]:
    path = _PATHS[command]
    fields = {name: value for name, value in arguments.items() if value is not None}
    url = f"{settings.test_url}{path.path}"
    if path.method == "POST":
        return path.method, url, json.dumps(fields).encode()
    return path.method, f"{url}?{urlencode(fields)}" if fields else url, None


def _not_test_mode(cluster: ClusterSettings) -> ClientError:
    url = http_settings(cluster.properties).test_url
    return ClientError(
        f"{url} is not the HTTP listener of a broker in test mode: start it with"
        " `wirebroker serve --test-mode`"
    )
