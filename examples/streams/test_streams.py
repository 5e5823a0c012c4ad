"""Each query is killed between two parts of its input, and tells what it has to once."""

import json

import pytest
from confluent_kafka import Producer

from wirebroker.testing import Broker

PATIENCE_S = 600


@pytest.fixture
def broker():
    with Broker.spawn() as spawned:
        yield spawned


@pytest.fixture
def restart(start_service, broker, tmp_path):
    """Kill a query, if it runs, and start it again with the state that it has left."""
    running = []

    def again(script):
        if running:
            running.pop().kill()
        state = str(tmp_path / "state")
        running.append(start_service(script, broker.bootstrap_servers, STATE_DIR=state))

    return again


def write(broker, topic, *rows):
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for row in rows:
        producer.produce(topic, json.dumps(row))
    assert producer.flush(30) == 0


def told(broker, topic, count):
    broker.wait_for(topic, count, timeout=PATIENCE_S, read_committed=True)
    records = broker.records(topic, read_committed=True)
    assert len(records) == count
    return {(record.key, record.value) for record in records}


def at(minute, second):
    return f"2026-03-02T12:{minute:02}:{second:02}Z"


def test_page_views_are_counted_per_minute(broker, restart):
    broker.create_topics({"views": 1, "views-by-minute": 1})
    write(broker, "views", *({"page": "home", "at": at(0, second)} for second in range(3)))
    write(broker, "views", {"page": "help", "at": at(0, 40)}, {"page": "home", "at": at(5, 0)})
    restart("views.py")
    first = told(broker, "views-by-minute", 2)
    restart("views.py")
    # The first is late: its minute was already sent. The second is later than all other minutes.
    write(broker, "views", {"page": "home", "at": at(0, 50)}, {"page": "home", "at": at(9, 0)})
    rows = {key: [] for key in (b"home", b"help")}
    for key, value in told(broker, "views-by-minute", 3):
        row = json.loads(value)
        assert row.pop("page").encode() == key
        rows[key].append((row["minute"], row["count"]))
    assert sorted(rows[b"home"]) == [
        ("2026-03-02T12:00:00.000Z", 3),
        ("2026-03-02T12:05:00.000Z", 1),
    ]
    assert rows[b"help"] == [("2026-03-02T12:00:00.000Z", 1)]
    assert len(first) == 2


def test_orders_are_joined_with_payments(broker, restart):
    broker.create_topics({"orders": 1, "payments": 1, "paid-orders": 1})
    write(broker, "orders", *({"id": n, "item": f"i{n}", "ordered": at(n, 0)} for n in range(3)))
    write(broker, "payments", {"order_id": 0, "cents": 100, "paid": at(1, 0)})
    restart("payments.py")
    told(broker, "paid-orders", 1)
    restart("payments.py")
    # The second order is paid, the third too late.
    write(broker, "payments", {"order_id": 1, "cents": 200, "paid": at(3, 0)})
    write(broker, "payments", {"order_id": 2, "cents": 300, "paid": at(30, 0)})
    assert told(broker, "paid-orders", 2) == {
        (b"0", b'{"id":0,"item":"i0","cents":100}'),
        (b"1", b'{"id":1,"item":"i1","cents":200}'),
    }


def test_balances_continue_after_restart(broker, restart):
    broker.create_topics({"transfers": 1, "balances": 1})
    write(broker, "transfers", {"account": "ana", "cents": 500}, {"account": "bo", "cents": 70})
    restart("balances.py")
    told(broker, "balances", 2)
    restart("balances.py")
    write(broker, "transfers", {"account": "ana", "cents": -200})
    assert told(broker, "balances", 3) == {
        (b"ana", b'{"account":"ana","cents":500,"transfers":1}'),
        (b"bo", b'{"account":"bo","cents":70,"transfers":1}'),
        (b"ana", b'{"account":"ana","cents":300,"transfers":2}'),
    }
