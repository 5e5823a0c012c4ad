"""A browser for the console's tests, and axe, which checks accessibility.

Chromium comes from PATH (Debian's package chromium: `apt-get install chromium`), axe-core from npm
into `.venv/tools`.
"""

from __future__ import annotations

import json
import shutil
from functools import cache
from typing import TYPE_CHECKING

from compat_tests.support.tools_node import install_packages
from tests.support.tools import tools

if TYPE_CHECKING:
    from pathlib import Path

AXE_PACKAGE = "axe-core@4.14.1"
_NAMES = ("chromium", "chromium-browser", "google-chrome")


@cache
def browser_command() -> str | None:
    """Return the path of a Chromium, or None if none is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


@cache
def axe_script() -> Path:
    """Return the script that checks a page for faults of accessibility."""
    folder = tools._installed(AXE_PACKAGE.replace("@", "-"), _install_axe)
    return folder / "node_modules" / "axe-core" / "axe.min.js"


def _install_axe(folder: Path) -> None:
    name, _, version = AXE_PACKAGE.partition("@")
    listed = {"private": True, "dependencies": {name: version}}
    (folder / "package.json").write_text(json.dumps(listed), encoding="utf-8")
    install_packages(folder)
