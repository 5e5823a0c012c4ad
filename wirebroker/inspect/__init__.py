"""Inspection of data directories from outside: dump, verify, repair."""
