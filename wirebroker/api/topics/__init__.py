"""Handlers for topics, partitions and their metadata."""
