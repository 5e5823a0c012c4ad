"""Kafka's command-line tools for operators: health checks, features, replicas, transactions.

Tools with subcommands (`kafka-features describe`) are groups: subcommands.py.
"""
