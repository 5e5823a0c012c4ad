"""Listeners of the broker and of HTTP, from the settings."""
