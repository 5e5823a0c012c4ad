"""Shared parts: argument checks, the event loop's thread, API names."""
