"""The version to be published, and its section of CHANGELOG.md."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

_VERSION = re.compile(r'^__version__ = "([^"]+)"$', re.MULTILINE)
_HEADING = re.compile(r"^## (?P<version>\S+)(?: \((?P<when>[^)]*)\))?$", re.MULTILINE)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}")


def version_of(root: Path) -> str:
    """Return the version of the sources."""
    (version,) = _VERSION.findall((root / "wirebroker" / "__init__.py").read_text("utf-8"))
    return str(version)


def check_changelog(text: str, version: str, *, final: bool) -> str:
    """Return the newest version's section of CHANGELOG.md.

    A `final` version must have a date instead of "(unreleased)".

    Raises:
        ValueError: The newest section has another version, is empty, or lacks its date.
    """
    headings = list(_HEADING.finditer(text))
    if not headings:
        raise ValueError("CHANGELOG.md has no heading like '## 1.2.3 (2026-01-31)'")
    first = headings[0]
    if first["version"] != version:
        raise ValueError(
            f"CHANGELOG.md starts with {first['version']}, but this is {version}"
            " (wirebroker/__init__.py): describe the changes, or fix the version"
        )
    if final and not _DATE.fullmatch(first["when"] or ""):
        raise ValueError(f"CHANGELOG.md has '{first[0]}': a published version needs its date there")
    end = headings[1].start() if len(headings) > 1 else len(text)
    part = text[first.end() : end].strip()
    if not part:
        raise ValueError(f"CHANGELOG.md does not describe {version}")
    return part


def dated(text: str, version: str, date: str) -> str:
    """Return the text with the newest version's release date, if it has none yet."""
    return text.replace(f"## {version} (unreleased)\n", f"## {version} ({date})\n", 1)
