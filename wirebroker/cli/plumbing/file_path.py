"""Type of flags that name a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path


class FilePath(click.Path):
    """Like click.Path, but imports pathlib on first use: a tenth of a short verb's time."""

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path; raise click.BadParameter if it is unsuitable."""
        from pathlib import Path  # noqa: PLC0415

        return Path(os.fsdecode(super().convert(value, param, ctx)))
