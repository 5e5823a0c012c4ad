"""Bounds for untrusted input: memory, turns, long requests."""
