"""Benchmarks beside Apache Kafka on the same machine: `python -m benchmarks` (`make bench`)."""
