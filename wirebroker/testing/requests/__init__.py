"""Recorded requests of clients."""
