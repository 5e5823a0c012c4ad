"""Clusters and workers, compared with Apache Kafka in the same setup."""
