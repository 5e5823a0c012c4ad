"""The type of flags that name a file."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pathlib import Path


class FilePath(click.Path):
    """As click.Path with a path_type, but pathlib waits for a flag that is given.

    Importing it takes a tenth of a short verb's time.
    """

    def convert(
        self,
        value: str | os.PathLike[str],
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> Path:
        """Return a path to what was named.

        Raises:
            click.BadParameter: It isn't as asked for (`exists`, `dir_okay`).
        """
        from pathlib import Path  # noqa: PLC0415 - see above

        return Path(os.fsdecode(super().convert(value, param, ctx)))
