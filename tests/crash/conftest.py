"""What every crash test needs."""

from tests.support.harness.only_errors import only_errors

__all__ = ["only_errors"]
