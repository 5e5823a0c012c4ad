"""The test mode's HTTP interface as a table and as OpenAPI."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wirebroker.base.version import version_text


class Argument(NamedTuple):
    """A field of a query or body."""

    name: str
    type: str  # in JSON Schema
    doc: str


class ControlPath(NamedTuple):
    """A method of a path, and its test command."""

    method: str
    path: str
    command: str
    doc: str
    arguments: tuple[Argument, ...] = ()


_API: Final = Argument("api", "string", "Only requests of this API: PRODUCE, FETCH, …")
_CLIENT_ID: Final = Argument("client_id", "string", "Only requests with this client id.")

_NAME: Final = Argument("name", "string", "The snapshot's name: letters, digits, _ - and .")
_ID: Final = Argument("id", "integer", "The fault's number.")

CONTROL_PATHS: Final = (
    ControlPath(
        "GET",
        "/test/v1/requests",
        "requests",
        "Return the last requests of clients, oldest first, decoded; bytes are base64.",
        (_API, _CLIENT_ID, Argument("most", "integer", "The largest number to return.")),
    ),
    ControlPath("DELETE", "/test/v1/requests", "forget-requests", "Forget the requests so far."),
    ControlPath("GET", "/test/v1/faults", "faults", "Return the faults, in their order."),
    ControlPath(
        "POST",
        "/test/v1/faults",
        "add-fault",
        "Add a fault and return its number; the first fault that matches a request acts.",
        (
            Argument(
                "kind",
                "string",
                "error, disconnect, delay, throttle, blackhole, fail_fsync or disk_full.",
            ),
            _API,
            _CLIENT_ID,
            Argument("topic", "string", "Only requests for this topic."),
            Argument("error", "string", "For an error: NOT_LEADER_OR_FOLLOWER, …"),
            Argument("when", "string", "For a disconnect: before_append or after_append."),
            Argument("delay_ms", "integer", "For a delay or a throttle."),
            Argument("times", "integer", "How often it acts; without it, always."),
        ),
    ),
    ControlPath(
        "POST",
        "/test/v1/faults/limit",
        "limit-fault",
        "Limit how often a fault acts from now on.",
        (_ID, Argument("times", "integer", "How often.")),
    ),
    ControlPath(
        "DELETE", "/test/v1/faults", "remove-fault", "Remove a fault; without id, all.", (_ID,)
    ),
    ControlPath("GET", "/test/v1/clock", "clock", "Return the broker's time."),
    ControlPath(
        "POST",
        "/test/v1/clock",
        "move-clock",
        "Move the broker's clock; the response follows when all work due by then is done.",
        (
            Argument("advance_ms", "integer", "Milliseconds to advance."),
            Argument("set_ms", "integer", "The time to move to, in ms since 1970."),
            Argument("freeze", "boolean", "Whether to stop the clock."),
            Argument("reset", "boolean", "Return to the machine's clock first."),
        ),
    ),
    ControlPath(
        "POST",
        "/test/v1/clock/restore",
        "restore-clock",
        "Set a new process's clock to the state that an earlier one returned.",
        (
            Argument("now_ms", "integer", "Ignored."),
            Argument("passed_ms", "integer", "Ms that both clocks are ahead of the machine's."),
            Argument("jumped_ms", "integer", "Ms that wall time is ahead in addition."),
            Argument("frozen_ms", "integer", "The machine's time at the stop; null while running."),
        ),
    ),
    ControlPath("POST", "/test/v1/crash", "crash", "Stop the broker immediately, like a kill."),
    ControlPath("POST", "/test/v1/start", "start", "Start it after a crash, at the same address."),
    ControlPath(
        "POST",
        "/test/v1/reset",
        "reset",
        "Replace the broker with an empty one without faults; return its address.",
    ),
    ControlPath(
        "POST",
        "/test/v1/snapshots",
        "take-snapshot",
        "Copy the broker's data to a snapshot next to it; return its directory.",
        (_NAME,),
    ),
    ControlPath(
        "POST",
        "/test/v1/snapshots/restore",
        "restore",
        "Restore the broker's data; connections are closed.",
        (_NAME,),
    ),
)


def description() -> dict[str, Any]:
    """Return the OpenAPI document."""
    paths: dict[str, Any] = {}
    for endpoint in CONTROL_PATHS:
        operation: dict[str, Any] = {
            "operationId": endpoint.command,
            "summary": endpoint.doc,
            "responses": {
                "200": {"description": "Done.", "content": {"application/json": {}}},
                "400": {"description": 'An argument is invalid: {"error": "…"}.'},
            },
        }
        fields = {
            argument.name: {"type": argument.type, "description": argument.doc}
            for argument in endpoint.arguments
        }
        if endpoint.method == "POST":
            schema = {"type": "object", "properties": fields, "additionalProperties": False}
            operation["requestBody"] = {"content": {"application/json": {"schema": schema}}}
        else:
            operation["parameters"] = [
                {
                    "name": argument.name,
                    "in": "query",
                    "required": False,
                    "description": argument.doc,
                    "schema": {"type": argument.type},
                }
                for argument in endpoint.arguments
            ]
        paths.setdefault(endpoint.path, {})[endpoint.method.lower()] = operation
    info = {"title": "wirebroker's test mode", "version": version_text()}
    return {"openapi": "3.1.0", "info": info, "paths": paths}
