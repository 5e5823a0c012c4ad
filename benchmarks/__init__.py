"""Benchmarks against Apache Kafka on one machine: `python -m benchmarks` (`make bench`)."""
