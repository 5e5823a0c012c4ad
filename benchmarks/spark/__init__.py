"""Spark beside either broker."""
