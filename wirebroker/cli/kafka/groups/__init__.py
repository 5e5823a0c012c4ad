"""Kafka's command-line tools for groups of each kind."""
