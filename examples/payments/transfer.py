"""Books payments exactly once: of each in `payments` two lines in `ledger`, in one transaction.

With CRASH_IN=3 it ends as by a crash within its third transaction, the lines written, nothing
committed.
"""

import json
import os

from confluent_kafka import Consumer, Producer


def book(servers: str, crash_in: int) -> None:
    """Book payments until killed."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "transfer",
            "enable.auto.commit": False,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "session.timeout.ms": 6000,
        }
    )
    # One that is started again fences the one before, and its transaction is aborted.
    producer = Producer({"bootstrap.servers": servers, "transactional.id": "transfer"})
    producer.init_transactions(30)
    consumer.subscribe(["payments"])
    started = 0
    while True:
        message = consumer.poll(1.0)
        if message is None or message.error():
            continue
        payment = json.loads(message.value() or b"")
        producer.begin_transaction()
        started += 1
        for account, amount in (
            (payment["from"], -payment["amount"]),
            (payment["to"], payment["amount"]),
        ):
            line = json.dumps({"payment": payment["id"], "account": account, "amount": amount})
            producer.produce("ledger", line, key=account)
        if started == crash_in:
            producer.flush(10)
            os._exit(1)
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), 10
        )
        producer.commit_transaction(10)


if __name__ == "__main__":
    book(os.environ["KAFKA_SERVERS"], int(os.environ.get("CRASH_IN", "0")))
