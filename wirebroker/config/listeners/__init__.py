"""Listeners of the broker and its controller, from the settings."""
