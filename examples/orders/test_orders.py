"""Each order is billed, also if the broker or the billing service dies in between."""

import json

from wirebroker.testing import Broker

ORDERS = 12


def invoices(broker: Broker) -> dict[str, int]:
    values = [json.loads(record.value) for record in broker.records("invoices")]
    return {invoice["order"]: invoice["amount"] for invoice in values}


EXPECTED = {f"order-{number}": 12 * (number + 1) for number in range(ORDERS)}


def test_an_order_is_billed(wirebroker, start_service):
    wirebroker.create_topics({"orders": 3, "invoices": 1})
    start_service("billing.py", wirebroker.bootstrap_servers)
    shop = start_service("shop.py", wirebroker.bootstrap_servers, ORDERS=str(ORDERS))
    assert shop.process.wait(30) == 0
    wirebroker.wait_for("invoices", ORDERS, timeout=30)
    assert invoices(wirebroker) == EXPECTED


def test_all_orders_are_billed_when_broker_is_killed(start_service):
    with Broker.spawn() as broker:
        broker.create_topics({"orders": 3, "invoices": 1})
        start_service("billing.py", broker.bootstrap_servers)
        settings = {"ORDERS": str(ORDERS), "PAUSE_MS": "200"}
        shop = start_service("shop.py", broker.bootstrap_servers, **settings)
        broker.wait_for("invoices", 1, timeout=30)  # both are connected
        broker.kill()
        broker.start()
        assert shop.process.wait(60) == 0
        broker.assert_consumed("orders", "billing", timeout=60)
        assert len(broker.records("orders")) == ORDERS
        assert invoices(broker) == EXPECTED


def test_all_orders_are_billed_when_response_is_lost_and_billing_killed(wirebroker, start_service):
    wirebroker.create_topics({"orders": 3, "invoices": 1})
    wirebroker.faults.disconnect("PRODUCE", when="after_append", topic="invoices").times(1)
    billing = start_service("billing.py", wirebroker.bootstrap_servers)
    start_service("shop.py", wirebroker.bootstrap_servers, ORDERS=str(ORDERS), PAUSE_MS="20")
    wirebroker.wait_for("invoices", 2, timeout=30)
    billing.kill()
    start_service("billing.py", wirebroker.bootstrap_servers)
    wirebroker.wait_for("orders", ORDERS, timeout=30)
    wirebroker.clock.advance(seconds=60)  # the session of the one that was killed
    wirebroker.assert_consumed("orders", "billing", timeout=30)
    assert invoices(wirebroker) == EXPECTED
