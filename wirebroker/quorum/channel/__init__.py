"""Requests of this broker to the active controller, and its registration."""
