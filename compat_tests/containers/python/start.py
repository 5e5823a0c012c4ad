"""Start an image with testcontainers-python's Kafka class; see ../harness.py for the arguments."""

import argparse
import sys

from testcontainers.community.kafka import KafkaContainer

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("image")
parser.add_argument("variant")
options = parser.parse_args()
container = KafkaContainer(options.image)
with container.with_kraft() if options.variant == "kraft" else container as kafka:
    sys.stdout.write(f"started {kafka.get_bootstrap_server()}\n")
    sys.stdout.flush()
    sys.stdin.readline()
