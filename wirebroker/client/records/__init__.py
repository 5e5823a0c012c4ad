"""Producing and consuming of records."""
