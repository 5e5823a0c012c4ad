"""Formatting of data directories before their node starts."""
