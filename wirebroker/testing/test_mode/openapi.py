"""The test mode's HTTP interface as a table, and the OpenAPI document built from it."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from wirebroker.base.version import version_text


class Argument(NamedTuple):
    """A field of a query or body."""

    name: str
    type: str  # in JSON Schema
    doc: str


class RigPath(NamedTuple):
    """A method of a path, and its rig command."""

    method: str
    path: str
    command: str
    doc: str
    arguments: tuple[Argument, ...] = ()


_API: Final = Argument("api", "string", "Requests of this kind alone: PRODUCE, FETCH, …")
_CLIENT_ID: Final = Argument("client_id", "string", "Of clients that call themselves so, alone.")

_NAME: Final = Argument("name", "string", "The snapshot's name: letters, digits, _ - and .")
_ID: Final = Argument("id", "integer", "The fault's number.")

RIG_PATHS: Final = (
    RigPath(
        "GET",
        "/test/v1/requests",
        "requests",
        "Return the last requests of clients, oldest first, decoded; bytes are base64.",
        (_API, _CLIENT_ID, Argument("most", "integer", "No more than so many.")),
    ),
    RigPath("DELETE", "/test/v1/requests", "forget-requests", "Forget the requests so far."),
    RigPath("GET", "/test/v1/faults", "faults", "Return the faults, in their order."),
    RigPath(
        "POST",
        "/test/v1/faults",
        "add-fault",
        "Set a fault, and return its number; of several that concern a request the first acts.",
        (
            Argument(
                "kind",
                "string",
                "error, disconnect, delay, throttle, blackhole, fail_fsync or disk_full.",
            ),
            _API,
            _CLIENT_ID,
            Argument("topic", "string", "Requests that name this topic, alone."),
            Argument("error", "string", "Of an error: NOT_LEADER_OR_FOLLOWER, …"),
            Argument("when", "string", "Of a disconnect: before_append or after_append."),
            Argument("delay_ms", "integer", "Of a delay, or a throttle."),
            Argument("times", "integer", "How often it acts; for ever if it is not given."),
        ),
    ),
    RigPath(
        "POST",
        "/test/v1/faults/limit",
        "limit-fault",
        "Let a fault act so many times from now on.",
        (_ID, Argument("times", "integer", "How often.")),
    ),
    RigPath("DELETE", "/test/v1/faults", "remove-fault", "Remove a fault, without id all.", (_ID,)),
    RigPath("GET", "/test/v1/clock", "clock", "Return what time it is for the broker."),
    RigPath(
        "POST",
        "/test/v1/clock",
        "move-clock",
        "Move the broker's clock; answered when what is due by then is done.",
        (
            Argument("advance_ms", "integer", "Let so many milliseconds pass."),
            Argument("set_ms", "integer", "Let time pass until so many ms after 1970."),
            Argument("freeze", "boolean", "Whether time stands still from now on."),
            Argument("reset", "boolean", "Go by the machine's clock again, before all else."),
        ),
    ),
    RigPath(
        "POST",
        "/test/v1/clock/restore",
        "restore-clock",
        "Have a new process's clock stand as that of one before, as that has told.",
        (
            Argument("now_ms", "integer", "Has no say."),
            Argument("passed_ms", "integer", "How far both clocks are ahead of the machine's."),
            Argument("jumped_ms", "integer", "How far wall time is besides."),
            Argument("frozen_ms", "integer", "When the machine's clock was stopped, if it is."),
        ),
    ),
    RigPath("POST", "/test/v1/crash", "crash", "End the broker at once, as a kill does."),
    RigPath("POST", "/test/v1/start", "start", "Start it after a crash, at the same address."),
    RigPath(
        "POST",
        "/test/v1/reset",
        "reset",
        "Have an empty broker run in its place, without faults; return where it listens.",
    ),
    RigPath(
        "POST",
        "/test/v1/snapshots",
        "take-snapshot",
        "Keep what the broker holds, beside its data; return where it lies.",
        (_NAME,),
    ),
    RigPath(
        "POST",
        "/test/v1/snapshots/restore",
        "restore",
        "Put the broker back to what it held; connections are closed.",
        (_NAME,),
    ),
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
