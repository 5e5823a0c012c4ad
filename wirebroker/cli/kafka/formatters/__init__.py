"""Kafka's formatters and deserializers, for `kafka-console-consumer`."""
