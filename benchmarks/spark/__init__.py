"""Spark with either broker."""
