"""Scheduled messages, retries and dead letters for stock Kafka clients."""
