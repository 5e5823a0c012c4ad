"""The test mode's HTTP interface; errors have status 400 and the body {"error": "…"}."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, cast

from wirebroker.http.message import HttpAnswer
from wirebroker.testing.test_mode.openapi import CONTROL_PATHS, description

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from wirebroker.http.message import HttpRequest
    from wirebroker.http.routes import Routes
    from wirebroker.testing.test_mode.controls import BrokerControls
    from wirebroker.testing.test_mode.openapi import ControlPath

_JSON: Final = "application/json"
_TYPES: Final = {"string": str, "integer": int, "boolean": bool}


def add_controls(routes: Routes, controls: BrokerControls) -> None:
    """Add the routes of the test mode."""

    async def describe(_request: HttpRequest) -> HttpAnswer:
        return _answer(description())

    for endpoint in CONTROL_PATHS:
        routes.add(endpoint.method, endpoint.path, _answering(controls, endpoint))
    routes.add("GET", "/test/v1/openapi.json", describe)


def _answering(
    controls: BrokerControls, endpoint: ControlPath
) -> Callable[[HttpRequest], Awaitable[HttpAnswer]]:
    async def answering(request: HttpRequest) -> HttpAnswer:
        arguments: Any = dict(request.query)
        if request.body:
            arguments = request.json()
        try:
            if not isinstance(arguments, dict):
                raise ValueError("the body must be a JSON object")  # noqa: TRY301, TRY004
            fields = cast("dict[str, Any]", arguments)
            unknown = fields.keys() - {argument.name for argument in endpoint.arguments}
            if unknown:
                allowed = ", ".join(argument.name for argument in endpoint.arguments) or "no"
                raise ValueError(f"{endpoint.path} takes {allowed} arguments, not {unknown.pop()}")  # noqa: TRY301
            if endpoint.method == "POST":
                _check_types(endpoint, fields)
            return _answer(await controls.carry_out(endpoint.command, fields))
        except ValueError as error:
            return _answer({"error": str(error)}, 400)

    return answering


def _check_types(endpoint: ControlPath, fields: dict[str, Any]) -> None:
    for argument in endpoint.arguments:
        value = fields.get(argument.name)
        # In Python, a bool is an int.
        is_bool = isinstance(value, bool)
        if value is not None and (
            not isinstance(value, _TYPES[argument.type])
            or is_bool is not (argument.type == "boolean")
        ):
            raise ValueError(f"{argument.name} must be of type {argument.type}, not {value!r}")


def _answer(value: Any, status: int = 200) -> HttpAnswer:
    return HttpAnswer(json.dumps(value).encode(), status, _JSON)
