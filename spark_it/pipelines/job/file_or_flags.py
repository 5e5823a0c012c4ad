"""Settings of a verb, from a job's file or from flags of the same names."""

from __future__ import annotations

import argparse
import dataclasses
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import described, load_job

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

Settings = TypeVar("Settings")

_NOT_FLAGS: Final = ("pipeline", "file")


def add_settings(
    verb: argparse.ArgumentParser, kind: type, names: Collection[str] | None = None
) -> None:
    """Add an argument for a job's file, and flags for its settings, limited to `names`.

    Tables have no flag.
    """
    verb.formatter_class = argparse.RawDescriptionHelpFormatter
    settings = "\n".join(described(kind))
    verb.description = f"{verb.description}\n\nsettings of a file, in TOML:\n{settings}"
    verb.add_argument("file", nargs="?", type=Path, help="the job's file, instead of flags")
    for field in dataclasses.fields(kind):
        setting_kind, description = field.metadata["kind"], field.metadata["what"]
        if setting_kind != "table" and (names is None or field.name in names):
            flag = f"--{field.name.replace('_', '-')}"
            convert = _FLAG_TYPES.get(setting_kind, str)
            choices = field.metadata["choices"] or None
            verb.add_argument(flag, type=convert, choices=choices, help=description)


def settings_of(
    options: argparse.Namespace, kind: type[Settings], **tables: dict[str, Any]
) -> Settings:
    """Return the settings from a file or flags; `tables` come from other flags.

    Raises:
        JobFileError: The file is invalid, flags are given beside it, or a flag is missing.
    """
    flags = {
        name: value
        for name, value in vars(options).items()
        if name not in _NOT_FLAGS and value is not None
    }
    if options.file is not None:
        if flags:
            name = next(iter(flags)).replace("_", "-")
            raise JobFileError(f"--{name} cannot be combined with a file")
        return load_job(options.file, kind)
    fields = {field.name: field for field in dataclasses.fields(kind)}  # type: ignore[arg-type]
    for name, field in fields.items():
        has_default = {field.default, field.default_factory} != {dataclasses.MISSING}
        if not has_default and name not in flags:
            raise JobFileError(f"--{name} or a file is missing: {field.metadata['what']}")
    return kind(**{name: value for name, value in flags.items() if name in fields}, **tables)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = 0.0
    if not 0 < seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text} is not a number of seconds above 0")
    return seconds


def _count(text: str) -> int:
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is not a whole number of at least 1")
    return int(text)


_FLAG_TYPES: Final[dict[str, Callable[[str], Any]]] = {"count": _count, "seconds": _seconds}
