"""Clusters and workers, beside Apache Kafka in the same set-up."""
