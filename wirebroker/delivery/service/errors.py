"""Errors of the service."""

from __future__ import annotations


class ServiceError(Exception):
    """The service cannot run; its message says what to do."""


class FencedError(Exception):
    """This instance must start again: another has its id, or a client of it failed for good."""
