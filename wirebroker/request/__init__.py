"""Requests, sessions, handlers, admission and deferred responses."""
