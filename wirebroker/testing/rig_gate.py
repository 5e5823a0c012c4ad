"""The gate of a broker in test mode: it sees every request, and keeps a note of it.

What the kit itself asks for is neither noted nor disturbed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from wirebroker.gate import Gate
from wirebroker.testing.kit_client import CLIENT_ID

if TYPE_CHECKING:
    from wirebroker.handlers import Handler
    from wirebroker.request import Piece, Request
    from wirebroker.testing.request_journal import RequestJournal


def noting_gate(journal: RequestJournal) -> Gate:
    """Return a gate that lets through what the tests do not want disturbed."""

    def note(request: Request, handler: Handler) -> list[Piece] | None:
        del handler
        gate.epoch += 1  # nothing that a session has prepared goes past the gate
        if request.client_id != CLIENT_ID:
            journal.add(request)
        return None

    gate = Gate(note)
    return gate
