"""Exactly-once delivery of batches to a topic."""
