"""Handlers for transactions and producer ids."""
