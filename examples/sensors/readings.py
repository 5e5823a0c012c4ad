"""Publishes readings of two sensors to `readings`: READINGS of each."""

import json
import os

from confluent_kafka import Producer


def publish(servers: str, count: int) -> None:
    """Publish so many readings of each sensor."""
    producer = Producer({"bootstrap.servers": servers, "enable.idempotence": True})
    for number in range(count):
        for sensor, degrees in (("attic", 30 + number), ("cellar", 10 - number)):
            producer.produce("readings", json.dumps({"degrees": degrees}), key=sensor)
    producer.flush(30)


if __name__ == "__main__":
    publish(os.environ["KAFKA_SERVERS"], int(os.environ.get("READINGS", "5")))
