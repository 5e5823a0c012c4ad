"""Places orders: ORDERS of them, one every PAUSE_MS, then ends."""

import asyncio
import json
import os

from aiokafka import AIOKafkaProducer


async def place(servers: str, count: int, pause_s: float) -> None:
    """Place so many orders."""
    producer = AIOKafkaProducer(
        bootstrap_servers=servers, enable_idempotence=True, acks="all", retry_backoff_ms=50
    )
    async with producer:
        for number in range(count):
            order = {"id": f"order-{number}", "item": "book", "count": number + 1}
            await producer.send_and_wait("orders", json.dumps(order).encode())
            await asyncio.sleep(pause_s)


if __name__ == "__main__":
    asyncio.run(
        place(
            os.environ["KAFKA_SERVERS"],
            int(os.environ.get("ORDERS", "10")),
            int(os.environ.get("PAUSE_MS", "0")) / 1000,
        )
    )
