"""An entry of the audit log, as a line of JSON."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

_MOST_CHARACTERS: Final = 1000
# Room for a list that was shortened before (changes/making/values.py).
_MOST_OF_VALUE: Final = (32 << 10) + 100


class AuditEntry(NamedTuple):
    """What happened: a login, the begin or the end of a change.

    Attributes:
        event: `begin` or `end` of a change; `login`, `login-failed`, `locked-out` or `logout`.
        user: The user's or token's name; None without a login, and for a name that does not exist.
        role: The user's role in the cluster, such as `operator`.
        address: Of the browser or program.
        via: `browser` or `http`, the HTTP interface.
        change_id: The same for the begin and the end of a change.
        cluster, kind, target: The subject of the change, such as `prod`, `create-topic`, `orders`.
        kafka_user: The console's user in the cluster.
        values: The change's values, without secrets.
        result: How it ended: `done`, `failed`, `stopped`, `timed-out`.
        message: The change's own sentence, or why it failed.
        other_cluster: The other cluster of a change that needs two, which has its own entries.
    """

    event: str
    user: str | None
    address: str
    via: str = "browser"
    role: str | None = None
    change_id: str | None = None
    cluster: str | None = None
    kind: str | None = None
    target: str | None = None
    kafka_user: str | None = None
    values: Mapping[str, str] | None = None
    result: str | None = None
    message: str | None = None
    other_cluster: str | None = None


def line_of(entry: AuditEntry, now_ms: int) -> bytes:
    """Return an entry as a line of ASCII; long values are shortened."""
    moment = datetime.fromtimestamp(now_ms / 1000, UTC)
    fields: dict[str, Any] = {"time": moment.isoformat(timespec="milliseconds")}
    for name, value in entry._asdict().items():
        if name == "values" and value is not None:
            fields[name] = {key: _shortened(text, _MOST_OF_VALUE) for key, text in value.items()}
        elif name in {"event", "user"} or value is not None:
            fields[name] = _shortened(value)
    return json.dumps(fields, ensure_ascii=True, separators=(", ", ": ")).encode() + b"\n"


def _shortened(value: str | None, most: int = _MOST_CHARACTERS) -> str | None:
    if value is None or len(value) <= most:
        return value
    return f"{value[:most]}… ({len(value)} characters)"
