"""A peer and we don't agree on TLS: its connection ends, and a line in the log has said why.

A module of its own, and never compiled: compiled classes cannot extend built-in ones.
"""

from __future__ import annotations


class TlsFailedError(ConnectionError):
    """The connection is of no use; its text is the cause."""
