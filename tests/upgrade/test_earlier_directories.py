"""Data directories that an earlier version wrote are opened, and hold all that was written."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.upgrade.content import check
from tests.upgrade.make_directories import DIRECTORIES, single, trio, unpack

if TYPE_CHECKING:
    from pathlib import Path


def test_the_directories_are_small():
    sizes = [path.stat().st_size for path in DIRECTORIES.glob("*.tar.gz")]
    assert len(sizes) == 2
    assert sum(sizes) < 1 << 20


def test_a_single_nodes_directories_are_opened(tmp_path: Path) -> None:
    unpack(DIRECTORIES / "single.tar.gz", tmp_path)
    broker = single(tmp_path)
    with broker:
        check(broker.bootstrap, has_acls=True)


def test_three_nodes_directories_are_opened(tmp_path: Path) -> None:
    unpack(DIRECTORIES / "three.tar.gz", tmp_path)
    first, second, third = brokers = trio(tmp_path)
    try:
        first.start()
        second.start()
        third.start()
        check(",".join(each.bootstrap for each in brokers), has_acls=False)
    finally:
        for broker in reversed(brokers):
            broker.stop()
