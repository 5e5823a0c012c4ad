"""Money is neither made nor lost, also if the service crashes within a transaction."""

import json

PAYMENTS = 5


def test_crash_within_transaction_books_no_payment_twice(wirebroker, start_service):
    servers = wirebroker.bootstrap_servers
    wirebroker.create_topics({"payments": 1, "ledger": 2, "balances": 1})
    for number in range(PAYMENTS):
        payment = {"id": number, "from": "anna", "to": "bert", "amount": 10}
        wirebroker.produce("payments", json.dumps(payment))
    start_service("audit.py", servers)

    crashed = start_service("transfer.py", servers, CRASH_IN="3")
    assert crashed.process.wait(60) == 1
    # The records are stored, and readers of committed records do not see them.
    assert len(wirebroker.records("ledger")) == 6
    assert len(wirebroker.records("ledger", read_committed=True)) == 4

    start_service("transfer.py", servers)
    wirebroker.clock.advance(seconds=10)  # the session of the one that crashed
    committed = wirebroker.wait_for("ledger", 2 * PAYMENTS, timeout=60, read_committed=True)
    booked = [json.loads(record.value)["payment"] for record in committed]
    assert sorted(booked) == sorted([*range(PAYMENTS)] * 2)

    balances = wirebroker.wait_for("balances", 2 * PAYMENTS, timeout=60)
    assert {(record.key, record.value) for record in balances} >= {
        (b"anna", b"-50"),
        (b"bert", b"50"),
    }
