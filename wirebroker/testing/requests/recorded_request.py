"""One request as tests see it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final

_SHOWN_BODY: Final = 160


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedRequest:
    """A client's request.

    Attributes:
        api: Kafka's name, such as "PRODUCE".
        peer: The client's address, `host:port`.
        body: Fields by Kafka's names with underscores; record batches are bytes. A topic given by
            id also has its name. None if the body was over 4 MiB or malformed.
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
