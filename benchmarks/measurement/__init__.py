"""Measurement in pairs, and the machine's state."""
