"""What every crash test needs."""

from tests.support.only_errors import only_errors

__all__ = ["only_errors"]
