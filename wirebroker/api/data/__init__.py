"""Handlers that read and write records."""
