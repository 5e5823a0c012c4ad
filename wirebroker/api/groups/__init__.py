"""Handlers for consumer groups and committed offsets."""
