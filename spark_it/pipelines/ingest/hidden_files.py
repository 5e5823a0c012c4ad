"""Files that Spark's file source skips by name, and links through which it reads them.

Spark skips files whose name, or a directory's name in their path, begins with `_` or `.` or ends in
`._COPYING_`. It reads `_a=b`, and names that begin with `_metadata` or `_common_metadata`.

Source: Spark's HadoopFSUtils.shouldFilterOutPathName; Hadoop's GlobPattern.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import re
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_PATTERN: Final = re.compile(r"[*?{\[]")
_SPECIAL: Final = re.compile(r"([*?{}\[\],\\])")
_EXCEPTIONS: Final = ("_metadata", "_common_metadata")
_COPYING: Final = "._COPYING_"
_CHECKSUM: Final = re.compile(r"\..+\.crc")
_TOKEN: Final = re.compile(r"\\.|\[[!^]?\]?[^\]]*\]|.", re.DOTALL)
_AS_REGEX: Final = {"*": "[^/]*", "?": "[^/]", "{": "(?:", "}": ")"}


def is_hidden(name: str) -> bool:
    """Return whether Spark skips a file or directory of this name."""
    if name.startswith(_EXCEPTIONS):
        return False
    is_marked = name.startswith("_") and "=" not in name
    return is_marked or name.startswith(".") or name.endswith(_COPYING)


def folder_of(source: str) -> Path:
    """Return the part of a pattern that must exist before files match."""
    parts = Path(source).parts
    plain = itertools.takewhile(lambda part: not _PATTERN.search(part), parts)
    return Path(*plain)


def hidden_files(source: str) -> Iterator[Path]:
    """Return the files that match a path or a Hadoop pattern and that Spark skips."""
    folder = folder_of(source)
    is_pattern = folder != Path(source)
    if folder.is_file():
        yield from [folder] if is_hidden(folder.name) else []
        return
    matches = re.compile(_regex_of(source) if is_pattern else re.escape(str(folder)))
    for directory, _, names in os.walk(folder):
        for name in sorted(names):
            if _CHECKSUM.fullmatch(name):
                continue
            path = Path(directory, name)
            # Spark lists a matching directory, even if hidden.
            roots = [
                candidate
                for candidate in (path, *path.parents)
                if matches.fullmatch(str(candidate))
            ]
            if roots and any(map(is_hidden, (name, *path.relative_to(roots[-1]).parts[:-1]))):
                yield path


class HiddenLinks:
    """Links to hidden files in a folder, under names that Spark reads."""

    def __init__(self, source: str, folder: Path) -> None:
        self._source = source
        self._folder = folder

    def refresh(self) -> None:
        """Create missing links, named by path, and remove broken ones."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for link in self._folder.iterdir():
            if not link.exists():
                link.unlink()
        for path in hidden_files(self._source):
            # The suffix shows the compression.
            ending = Path(path.name.removesuffix(_COPYING)).suffix
            name = blake2b(str(path).encode(), digest_size=16).hexdigest() + ending
            with contextlib.suppress(FileExistsError):
                (self._folder / name).symlink_to(path)

    def pattern(self) -> str:
        """Return a pattern that matches the job's files and the links."""
        is_pattern = folder_of(self._source) != Path(self._source)
        source = self._source if is_pattern else _escaped(self._source)
        # Hadoop treats only patterns that begin with a slash as absolute.
        return f"/{{{source.lstrip('/')},{_escaped(str(self._folder)).lstrip('/')}}}"

    def target_of(self, path: Path) -> Path:
        """Return the target of a link, or any other path unchanged."""
        return path.readlink() if path.parent == self._folder else path


def _escaped(path: str) -> str:
    return _SPECIAL.sub(r"\\\1", path)


def _regex_of(pattern: str) -> str:
    depth = 0
    parts: list[str] = []
    for token in _TOKEN.findall(pattern):
        depth += (token == "{") - (token == "}")
        if token == "," and depth:
            parts.append("|")
        elif token[0] == "[" and len(token) > 1:
            inside = token[1:-1].replace("\\", r"\\")
            parts.append(f"[^{inside[1:]}]" if inside[:1] in ("!", "^") else f"[{inside}]")
        elif token[0] == "\\" and len(token) > 1:
            parts.append(re.escape(token[1:]))
        else:
            parts.append(_AS_REGEX.get(token) or re.escape(token))
    return "".join(parts)
