"""Sockets: which are ready, and how bytes are received and sent."""
