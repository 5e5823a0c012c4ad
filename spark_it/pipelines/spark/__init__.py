"""Spark and Java: installation, start, settings."""
