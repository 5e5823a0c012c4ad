"""Readiness of sockets, and how bytes are received and sent."""
