"""A real data directory, copied for each test."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from tests.unit.wirebroker.inspect import directory_kit


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return the directory of a cleanly stopped broker; it must not be changed."""
    directory = tmp_path_factory.mktemp("made") / "data"
    asyncio.run(directory_kit.fill(directory))
    return directory


@pytest.fixture
def data(made, tmp_path):
    return shutil.copytree(made, tmp_path / "data")
