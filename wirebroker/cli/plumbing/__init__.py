"""Shared parts of verbs."""
