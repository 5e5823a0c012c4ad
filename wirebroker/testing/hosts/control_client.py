"""Test commands over HTTP (openapi.py)."""

from __future__ import annotations

import http.client
import json
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlencode

from wirebroker.codecs.json_text import parse_json
from wirebroker.testing.test_mode.openapi import CONTROL_PATHS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from wirebroker.net.client.settings import PeerAddress

# Advancing the clock may cause much work.
_TIMEOUT_S: Final = 60.0
_OK: Final = 200


def send_command(
    address: PeerAddress, command: str, arguments: Mapping[str, Any], token: str | None = None
) -> Any:
    """Send a command without None arguments; return its result. It blocks.

    Raises:
        ValueError: An argument is invalid.
        ConnectionError: There is no response.
    """
    (endpoint,) = (
        control_path for control_path in CONTROL_PATHS if control_path.command == command
    )
    fields = {name: value for name, value in arguments.items() if value is not None}
    path, body = endpoint.path, None
    if endpoint.method == "POST":
        body = json.dumps(fields)
    elif fields:
        path += "?" + urlencode(fields)
    connection = http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
    try:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        connection.request(endpoint.method, path, body, headers)
        answer = connection.getresponse()
        text = answer.read()
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"the broker does not respond over HTTP: {error}") from error
    finally:
        connection.close()
    if answer.status == _OK:
        return parse_json(text)
    message = text.decode(errors="replace").strip()
    if answer.getheader("Content-Type") == "application/json":
        raise ValueError(parse_json(text)["error"])
    raise ConnectionError(f"the broker returned {answer.status}: {message}")
