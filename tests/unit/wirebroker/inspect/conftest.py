"""A real data directory, made once by a broker and copied for each test."""

from __future__ import annotations

import asyncio
import shutil

import pytest

from tests.unit.wirebroker.inspect import directory_kit


@pytest.fixture(scope="session")
def made(tmp_path_factory):
    """Return a directory that a broker left when it stopped cleanly; not to be changed."""
    directory = tmp_path_factory.mktemp("made") / "data"
    asyncio.run(directory_kit.fill(directory))
    return directory


@pytest.fixture
def data(made, tmp_path):
    """Return a copy of it, to be changed."""
    return shutil.copytree(made, tmp_path / "data")
