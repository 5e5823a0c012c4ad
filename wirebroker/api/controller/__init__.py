"""Handlers of controller listeners, one module per request family."""
