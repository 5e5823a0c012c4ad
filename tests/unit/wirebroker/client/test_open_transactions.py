"""Which transactions are open, and which of those hang."""

from __future__ import annotations

import pytest

from wirebroker.client.transactions.transactions import DescribedTransaction
from wirebroker.console.model.transaction_polls import is_hanging

STARTED_MS = 1_000_000
TIMEOUT_MS = 60_000
LATE_MS = STARTED_MS + 10 * TIMEOUT_MS


def described(state: str, started_ms: int | None = STARTED_MS) -> DescribedTransaction:
    """Return a transaction; Kafka keeps the start of the last one after its end."""
    return DescribedTransaction("payer", 1, state, 4000, 2, TIMEOUT_MS, started_ms, ["orders-0"])


@pytest.mark.parametrize(
    ("transaction", "now_ms", "open_ms", "hangs"),
    [
        (described("Ongoing"), STARTED_MS + 5, 5, False),
        (described("Ongoing"), STARTED_MS - 5, 0, False),
        (described("Ongoing"), LATE_MS, LATE_MS - STARTED_MS, True),
        (described("Ongoing", None), LATE_MS, None, False),
        (described("Empty", None), LATE_MS, None, False),
        *(
            (described(state), LATE_MS, None, False)
            for state in (
                "Empty",
                "PrepareCommit",
                "PrepareAbort",
                "CompleteCommit",
                "CompleteAbort",
                "PrepareEpochFence",
            )
        ),
    ],
)
def test_only_an_ongoing_transaction_is_open_and_may_hang(transaction, now_ms, open_ms, hangs):
    assert transaction.is_open is (transaction.state == "Ongoing")
    assert transaction.open_ms(now_ms) == open_ms
    assert is_hanging(transaction, now_ms) is hangs
