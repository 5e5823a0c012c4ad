"""Listening sockets, and the listeners that are open now."""
