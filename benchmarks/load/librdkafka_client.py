"""One librdkafka client in its own process; prints records and seconds as JSON.

    python -m benchmarks.load.librdkafka_client produce|consume '{"bootstrap": …, "topic": …, …}'

produce: records, record_bytes, config (librdkafka's names), transaction (records per transaction)
consume: records, config
"""

from __future__ import annotations

import argparse
import json
import os
import time
from typing import Any

from confluent_kafka import Consumer, KafkaException, Producer

_MOST_AT_ONCE = 10_000


def produce(settings: dict[str, Any]) -> tuple[int, float]:
    config = {"bootstrap.servers": settings["bootstrap"], "queue.buffering.max.messages": 1_000_000}
    failed: list[Any] = []
    producer = Producer(
        {**config, **settings.get("config", {}), "error_cb": failed.append},
    )
    transaction = settings.get("transaction")
    value = os.urandom(settings["record_bytes"])
    topic = settings["topic"]
    if transaction:
        producer.init_transactions(30)
        producer.begin_transaction()
    began = time.monotonic()
    for number in range(1, settings["records"] + 1):
        while True:
            try:
                producer.produce(topic, value)
                break
            except BufferError:
                producer.poll(0.01)
        if transaction and number % transaction == 0:
            producer.commit_transaction(30)
            producer.begin_transaction()
    if transaction:
        producer.commit_transaction(30)
    unsent = producer.flush(120)
    if unsent or failed:
        raise RuntimeError(f"{unsent} records were not sent; {failed[:1]}")
    return int(settings["records"]), time.monotonic() - began


def consume(settings: dict[str, Any]) -> tuple[int, float]:
    """Return the records after the first few, and the seconds since, without joining the group."""
    consumer = Consumer(
        {
            "bootstrap.servers": settings["bootstrap"],
            "group.id": f"reader-{os.getpid()}-{time.monotonic_ns()}",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            # A full queue would stop fetching for a second.
            "queued.min.messages": 10_000_000,
            "queued.max.messages.kbytes": 2_097_151,
            **settings.get("config", {}),
        }
    )
    consumer.subscribe([settings["topic"]])
    give_up = time.monotonic() + 120
    first = _some(consumer, give_up)
    began = time.monotonic()
    count = 0
    while first + count < settings["records"]:
        count += _some(consumer, give_up)
    seconds = time.monotonic() - began
    consumer.close()
    return count, seconds


def _some(consumer: Consumer, give_up: float) -> int:
    while time.monotonic() < give_up:
        messages = consumer.consume(_MOST_AT_ONCE, timeout=1.0)
        for message in messages:
            error = message.error()
            if error is not None:
                raise KafkaException(error)
        if messages:
            return len(messages)
    raise RuntimeError("no records arrived within 120 s")


def main() -> None:
    verbs = {"produce": produce, "consume": consume}
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("verb", choices=verbs)
    parser.add_argument("settings", type=json.loads, metavar="JSON")
    options = parser.parse_args()
    records, seconds = verbs[options.verb](options.settings)
    print(json.dumps({"records": records, "seconds": seconds}))


if __name__ == "__main__":
    main()
