"""Handlers for transactions."""
