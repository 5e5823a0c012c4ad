"""Reports of lost and skipped offsets, as files in the folder of option `lossReport`.

    new-HASH.json         {"topic": "orders", "partition": 0, "from": 5, "to": 9}
    reported-HASH.json    the same, after `take_losses` has returned it

`to` is excluded. If it equals `from`, the partition is gone or ends before `from`. Names are hashes
of the content, so that repeated batches write the same file.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import uuid4

from wirebroker.codecs.json_text import parse_json

if TYPE_CHECKING:
    from collections.abc import Iterable

_NEW: Final = "new-"
_REPORTED: Final = "reported-"


class LostRange(NamedTuple):
    """Missing offsets of a partition."""

    topic: str
    partition: int
    from_offset: int
    end_offset: int


def note_loss(folder: str | None, lost: LostRange) -> None:
    """Write a lost range durably into a folder, if there is one."""
    if folder is None:
        return
    topic, partition, start, end = lost
    fields = {"topic": topic, "partition": partition, "from": start, "to": end}
    content = json.dumps(fields).encode()
    name = f"{blake2b(content, digest_size=16).hexdigest()}.json"
    Path(folder).mkdir(parents=True, exist_ok=True)
    # Several workers may write the same range, each first to its own file.
    incomplete = Path(folder, f".{uuid4().hex}-{name}")
    with incomplete.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    incomplete.replace(Path(folder, _NEW + name))


def take_losses(folder: Path) -> list[LostRange]:
    """Return the unreported lost ranges, and mark them as reported."""
    ranges: list[LostRange] = []
    for path in folder.glob(f"{_NEW}*.json"):
        fields: dict[str, Any] = parse_json(path.read_text(encoding="utf-8"))
        ranges.append(LostRange(*(fields[name] for name in ("topic", "partition", "from", "to"))))
        path.replace(path.with_name(_REPORTED + path.name.removeprefix(_NEW)))
    return _merged(ranges)


def _merged(ranges: Iterable[LostRange]) -> list[LostRange]:
    """Return the union of the ranges, and the partitions that are gone, in order."""
    merged: list[LostRange] = []
    deleted: set[LostRange] = set()
    for lost in sorted(ranges):
        last = merged[-1] if merged else None
        if lost.from_offset == lost.end_offset:
            deleted.add(lost)
        elif last and lost[:2] == last[:2] and lost.from_offset <= last.end_offset:
            merged[-1] = last._replace(end_offset=max(last.end_offset, lost.end_offset))
        else:
            merged.append(lost)
    return sorted([*merged, *deleted])
