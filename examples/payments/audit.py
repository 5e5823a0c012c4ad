"""Audits the ledger: reads what was committed, writes each account's balance to `balances`."""

import json
import os
from collections import Counter

from confluent_kafka import Consumer, Producer


def audit(servers: str) -> None:
    """Audit until killed. Balances are computed from the ledger at each start."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "audit",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
        }
    )
    producer = Producer({"bootstrap.servers": servers, "linger.ms": 0})
    balances: Counter[str] = Counter()
    consumer.subscribe(["ledger"])
    while True:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        line = json.loads(message.value() or b"")
        balances[line["account"]] += line["amount"]
        producer.produce("balances", str(balances[line["account"]]), key=line["account"])
        producer.flush(10)


if __name__ == "__main__":
    audit(os.environ["KAFKA_SERVERS"])
