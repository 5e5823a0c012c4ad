"""The transcripts of this folder and of `quorum/`, and the driver that each needs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.transcripts.brokers import fresh_driver
from tests.transcripts.quorum.quorum_driver import fresh_quorum_driver

if TYPE_CHECKING:
    from collections.abc import Sequence
    from contextlib import AbstractContextManager

    from tests.transcripts.driver import Driver
    from tests.transcripts.script import Step

HERE: Final = Path(__file__).parent
_OF_VOTERS: Final = "quorum"


def transcripts() -> list[Path]:
    """Return all files."""
    return sorted([*HERE.glob("*.txt"), *(HERE / _OF_VOTERS).glob("*.txt")])


def name_of(file: Path) -> str:
    """Return a transcript's name: its path in this folder without the suffix."""
    return file.resolve().relative_to(HERE).with_suffix("").as_posix()


def driver_for(
    file: Path, kind: str, directory: Path, steps: Sequence[Step]
) -> AbstractContextManager[Driver]:
    """Return a driver with a new broker or voter of a kind."""
    make = fresh_quorum_driver if file.parent.name == _OF_VOTERS else fresh_driver
    return make(kind, directory, steps)
