"""Shared parts of Kafka's scripts: flags as in Kafka's parser, texts as in Java."""
