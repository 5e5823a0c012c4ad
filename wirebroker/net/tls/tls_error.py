"""The error of a failed TLS connection.

A separate module that is never compiled: compiled classes cannot extend built-in ones.
"""

from __future__ import annotations


class TlsFailedError(ConnectionError):
    """The connection is unusable; the text is the cause."""
