"""Fixtures of the crash tests."""

from tests.support.harness.only_errors import only_errors

__all__ = ["only_errors"]
