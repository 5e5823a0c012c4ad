"""Offsets that a read found gone and went on behind, as files in a folder: option `lossReport`.

    TOPIC-PARTITION@FROM-TO         FROM = TO: the partition is gone, or ends before FROM
    TOPIC-PARTITION@FROM-TO.told    the same, reported before

Planners and workers of a read write them; a batch that is done again writes the same names.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable

_NAME: Final = re.compile(r"(.+)-(\d+)@(\d+)-(\d+)")
_TOLD: Final = ".told"


class LostRange(NamedTuple):
    """Offsets of a partition that are gone, the last one excluded."""

    topic: str
    partition: int
    from_offset: int
    end_offset: int


def note_loss(folder: str | None, lost: LostRange) -> None:
    """Write what is lost into a folder; None: there is none."""
    if folder is not None:
        topic, partition, start, end = lost
        Path(folder).mkdir(parents=True, exist_ok=True)
        (Path(folder) / f"{topic}-{partition}@{start}-{end}").touch()


def take_losses(folder: Path) -> list[LostRange]:
    """Return what is lost and was not reported before; from now on it was."""
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    found: list[LostRange] = []
    for path in paths:
        match = _NAME.fullmatch(path.name)
        if match:
            found.append(LostRange(match[1], *map(int, match.groups()[1:])))
            path.replace(path.with_name(path.name + _TOLD))
    return _merged(found)


def _merged(ranges: Iterable[LostRange]) -> list[LostRange]:
    """Return ranges without what several of them have, in order."""
    found: list[LostRange] = []
    for each in sorted(ranges):
        last = found[-1] if found else None
        if last and each[:2] == last[:2] and each.from_offset <= last.end_offset:
            found[-1] = last._replace(end_offset=max(last.end_offset, each.end_offset))
        else:
            found.append(each)
    return found
