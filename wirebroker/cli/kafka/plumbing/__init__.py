"""Shared parts of Kafka scripts: flags as in Kafka's parser, texts as in Java."""
