"""Fixtures of all simulations."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

import pytest

from tests.support.harness.only_errors import only_errors

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["only_errors"]


@pytest.fixture(autouse=True, scope="module")
def _garbage_stays_here() -> Iterator[None]:
    """Collect the unawaited coroutines of killed brokers, which would warn in other tests."""
    yield
    gc.collect()
