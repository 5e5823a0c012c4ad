"""Errors of the service."""

from __future__ import annotations


class ServiceError(Exception):
    """The service cannot run; its message says what to do."""


class StoppingError(Exception):
    """The service is to stop, and an instance has not begun yet."""


class FencedError(Exception):
    """This instance must start again: another has its id, or a client of it failed for good."""
