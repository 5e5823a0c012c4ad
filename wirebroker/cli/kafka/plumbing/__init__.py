"""Shared parts of Kafka scripts: flags and texts as in Java."""
