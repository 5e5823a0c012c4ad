"""Files that Spark ignores by their names are found and linked."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from wirebroker.pipelines.ingest.hidden_files import HiddenLinks, hidden_files, is_hidden

if TYPE_CHECKING:
    from pathlib import Path

FILES = (
    *("in/a.csv", "in/.b.csv", "in/_c.csv", "in/_d=1.csv", "in/_metadata.csv", "in/e._COPYING_"),
    *(
        "in/.a.csv.crc",
        ".trash/.j.csv.crc",
        "in/_tmp/f.csv",
        "in/x=1/.g.csv",
        "in/deep/h.csv",
        ".trash/.i.csv",
        ".trash/j.csv",
    ),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name, encoding="utf-8")
    return tmp_path


@pytest.mark.parametrize(
    ("name", "is_left_out"),
    [
        *((".x", True), ("_x", True), ("x._COPYING_", True), ("._x=1", True)),
        *(("x", False), ("_x=1", False), ("_metadata.csv", False), ("_common_metadata", False)),
    ],
)
def test_hidden_file_rule_equals_sparks(name: str, is_left_out: bool):
    assert is_hidden(name) == is_left_out


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("in", ["in/.b.csv", "in/_c.csv", "in/_tmp/f.csv", "in/e._COPYING_", "in/x=1/.g.csv"]),
        ("in/.b.csv", ["in/.b.csv"]),
        ("in/a.csv", []),
        ("in/*.csv", ["in/.b.csv", "in/_c.csv"]),
        ("in/{.b,a}.csv", ["in/.b.csv"]),
        ("in/[._]?.csv", ["in/.b.csv", "in/_c.csv"]),
        ("in/[!_]b.csv", ["in/.b.csv"]),
        ("in/*/*.csv", ["in/x=1/.g.csv"]),
        ("*", ["in/.b.csv", "in/_c.csv", "in/_tmp/f.csv", "in/e._COPYING_", "in/x=1/.g.csv"]),
        (".trash", [".trash/.i.csv"]),
        ("in/none*", []),
    ],
)
def test_hidden_files_of_a_source_are_found(folder: Path, source: str, expected: list[str]):
    if source == "*":
        expected = [*expected, ".trash/.i.csv"]
    result = sorted(str(path.relative_to(folder)) for path in hidden_files(f"{folder}/{source}"))
    assert result == sorted(expected)


def test_links_to_hidden_files_are_stable(folder: Path):
    links = HiddenLinks(f"{folder}/in", folder / "job" / "hidden")
    links.refresh()
    first = sorted((folder / "job" / "hidden").iterdir())
    assert sorted(path.read_text(encoding="utf-8") for path in first) == sorted(
        ["in/.b.csv", "in/_c.csv", "in/_tmp/f.csv", "in/e._COPYING_", "in/x=1/.g.csv"]
    )
    assert not any(is_hidden(path.name) for path in first)
    (folder / "in" / ".new.gz").write_text("new", encoding="utf-8")
    links.refresh()
    (added,) = set((folder / "job" / "hidden").iterdir()) - set(first)
    assert added.suffix == ".gz"
    assert links.target_of(added) == folder / "in" / ".new.gz"
    assert links.target_of(folder / "in" / "a.csv") == folder / "in" / "a.csv"
    assert links.pattern() == f"/{{{str(folder)[1:]}/in,{str(folder)[1:]}/job/hidden}}"


def test_links_to_removed_files_are_deleted(folder: Path):
    link_folder = folder / "job" / "hidden"
    links = HiddenLinks(f"{folder}/in", link_folder)
    links.refresh()
    before = set(link_folder.iterdir())
    (folder / "in" / ".b.csv").rename(folder / "in" / "b.csv")
    links.refresh()
    (dropped,) = before - set(link_folder.iterdir())
    (folder / "in" / "b.csv").rename(folder / "in" / ".b.csv")
    links.refresh()
    assert set(link_folder.iterdir()) == before
    assert links.target_of(dropped) == folder / "in" / ".b.csv"
