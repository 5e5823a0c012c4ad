"""Bills orders: reads `orders`, writes an invoice for each to `invoices`, then commits.

An order whose invoice was written before a crash is read again, so invoices have the order's id as
key: who reads them keeps the last one. Run it as often as there are partitions.
"""

import asyncio
import json
import os

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

PRICES = {"book": 12, "pen": 2}


def invoice_of(order: dict) -> dict:
    """Return what is to be paid for an order."""
    return {"order": order["id"], "amount": PRICES[order["item"]] * order["count"]}


async def bill(servers: str) -> None:
    """Bill until cancelled."""
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True, acks="all", retry_backoff_ms=50
    )
    consumer = AIOKafkaConsumer(
        "orders",
        bootstrap_servers=servers,
        group_id="billing",
        enable_auto_commit=False,
        auto_offset_reset="earliest",
    )
    async with producer, consumer:
        async for message in consumer:
            order = json.loads(message.value)
            invoice = json.dumps(invoice_of(order)).encode()
            await producer.send_and_wait("invoices", invoice, key=order["id"].encode())
            await consumer.commit()


if __name__ == "__main__":
    asyncio.run(bill(os.environ["KAFKA_SERVERS"]))
