"""One request as tests see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_SHOWN_BODY: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A request that a client has sent.

    Attributes:
        api: Which, in Kafka's name: "PRODUCE".
        version: Of the request.
        client_id: What the client calls itself.
        peer: Where it came from, `host:port`.
        body: Its fields, by Kafka's names written with underscores; record batches are bytes. Where
            the client gives a topic's id instead of its name, the name is filled in. None if it was
            too long to be kept, or is no such request.
    """

    api: str
    version: int
    client_id: str | None
    peer: str
    body: dict[str, Any] | None = field(repr=False)

    def __str__(self) -> str:
        body = "(not kept)" if self.body is None else str(self.body)
        if len(body) > _SHOWN_BODY:
            body = f"{body[:_SHOWN_BODY]}…"
        return f"{self.peer} {self.client_id or '-'}: {self.api} v{self.version} {body}"
