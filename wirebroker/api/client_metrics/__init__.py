"""Requests of clients that push metrics (KIP-714)."""
