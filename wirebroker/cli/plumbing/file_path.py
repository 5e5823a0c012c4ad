"""Type of flags that name a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path


class FilePath(click.Path):
    """Like click.Path with a path_type, but imports pathlib on first use.

    The import takes a tenth of a short verb's time.
    """

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return the path; raise click.BadParameter if it does not meet the requirements."""
        from pathlib import Path  # noqa: PLC0415 - see above

        return Path(os.fsdecode(super().convert(value, param, ctx)))
