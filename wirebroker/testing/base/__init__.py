"""Shared parts of the testing kit: argument checks, the event loop's thread, API names."""
