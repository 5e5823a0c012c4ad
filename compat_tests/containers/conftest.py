"""Fixtures for the tested image, if there is an engine and an image: `make test-image`."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from compat_tests.containers.harness import engine_output

if TYPE_CHECKING:
    from collections.abc import Iterator

# Some classes parse tags as cp-kafka versions and use KRaft by default from 8 on.
TAGS = ("7.2.0", "7.6.0", "8.0.0")


@pytest.fixture(scope="session")
def images() -> Iterator[dict[str, str]]:
    """Return the image's names by tag; remove remaining containers at the end."""
    image = os.environ.get("WIREBROKER_IMAGE")
    if not image:
        pytest.skip("WIREBROKER_IMAGE names no image: make test-image")
    try:
        engine_output("image", "inspect", "--format", "{{.Id}}", image)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(f"no container engine has the image {image}: {error}")
    names = {tag: f"wirebroker-test-{os.getpid()}:{tag}" for tag in TAGS}
    for name in names.values():
        engine_output("tag", image, name)
    yield names
    for name in names.values():
        containers = engine_output("ps", "--all", "--quiet", "--filter", f"ancestor={name}").split()
        if containers:
            engine_output("rm", "--force", "--volumes", *containers)
        engine_output("rmi", name)
