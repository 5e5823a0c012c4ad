"""Faults that tests set, and their effects on requests."""
