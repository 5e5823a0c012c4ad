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


class RigGate(Gate):
    """Lets through what the tests do not want disturbed.

    Attributes:
        epoch: Another one whenever it is read, so that nothing that a session has prepared goes
            past the gate.
    """

    __slots__ = ("_epoch", "_journal")

    def __init__(self, journal: RequestJournal) -> None:
        self._epoch = 0
        self._journal = journal

    @property
    def epoch(self) -> int:  # type: ignore[override]  # read, never set
        """Return what no prepared request holds for."""
        self._epoch += 1
        return self._epoch

    def refusal(self, request: Request, handler: Handler) -> list[Piece] | None:
        """Note a request, and let it through."""
        if request.client_id == CLIENT_ID:
            return None
        self._journal.add(request)
        return super().refusal(request, handler)
