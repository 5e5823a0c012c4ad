"""Kafka's command-line tools for operators; those with subcommands are groups (subcommands.py)."""
