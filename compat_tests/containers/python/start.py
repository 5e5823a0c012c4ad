"""Starts an image by testcontainers-python's Kafka class; see ../harness.py for what it is told."""

import sys

from testcontainers.community.kafka import KafkaContainer

image, variant = sys.argv[1:]
container = KafkaContainer(image)
with container.with_kraft() if variant == "kraft" else container as kafka:
    sys.stdout.write(f"started {kafka.get_bootstrap_server()}\n")
    sys.stdout.flush()
    sys.stdin.readline()
