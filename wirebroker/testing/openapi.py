"""What the test mode offers over HTTP: one table, and an OpenAPI description made of it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wirebroker.version import version_text


class Argument(NamedTuple):
    """A field of a query or a body."""

    name: str
    type: str  # of JSON Schema
    doc: str


class RigPath(NamedTuple):
    """One method of one path, and the rig's command that it stands for."""

    method: str
    path: str
    command: str
    doc: str
    arguments: tuple[Argument, ...] = ()


_API: Final = Argument("api", "string", "Requests of this kind alone: PRODUCE, FETCH, …")
_CLIENT_ID: Final = Argument("client_id", "string", "Of clients that call themselves so, alone.")

RIG_PATHS: Final = (
    RigPath(
        "GET",
        "/test/v1/requests",
        "requests",
        "Return the last requests of clients, oldest first, decoded; bytes are base64.",
        (_API, _CLIENT_ID, Argument("most", "integer", "No more than so many.")),
    ),
    RigPath("DELETE", "/test/v1/requests", "forget-requests", "Forget the requests so far."),
)


def description() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, Any] = {}
    for endpoint in RIG_PATHS:
        operation: dict[str, Any] = {
            "operationId": endpoint.command,
            "summary": endpoint.doc,
            "responses": {
                "200": {"description": "Done.", "content": {"application/json": {}}},
                "400": {"description": 'An argument does not fit: {"error": "…"}.'},
            },
        }
        fields = {
            each.name: {"type": each.type, "description": each.doc} for each in endpoint.arguments
        }
        if endpoint.method == "POST":
            schema = {"type": "object", "properties": fields, "additionalProperties": False}
            operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        else:
            operation["parameters"] = [
                {
                    "name": each.name,
                    "in": "query",
                    "required": False,
                    "description": each.doc,
                    "schema": {"type": each.type},
                }
                for each in endpoint.arguments
            ]
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    info = {"title": "wirebroker's test mode", "version": version_text()}
    return {"openapi": "3.1.0", "info": info, "paths": paths}
