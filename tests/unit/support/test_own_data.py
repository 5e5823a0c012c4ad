"""A test that reads or writes the data of `make run` fails."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize("path", ["data", "./data/meta.properties", "tests/../data/x", "absolute"])
def test_data_directory_of_make_run_is_protected(path, monkeypatch):
    monkeypatch.chdir(ROOT)
    target = str(ROOT / "data" / ".lock") if path == "absolute" else path
    with pytest.raises(AssertionError, match="give it its own directory"):
        os.open(target + "/t-0", os.O_RDONLY)
    with pytest.raises(AssertionError, match="give it its own directory"):
        Path(target).rmdir()
    with pytest.raises(AssertionError, match="give it its own directory"):
        Path(target).read_text()
    with pytest.raises(AssertionError, match="give it its own directory"):
        os.scandir(target)


def test_other_directories_of_that_name_are_not_protected(tmp_path):
    (tmp_path / "data").mkdir()
    assert list((tmp_path / "data").iterdir()) == []


def test_a_tree_with_such_a_directory_can_be_removed(tmp_path, monkeypatch):
    """shutil.rmtree names files relative to the directory that it has opened."""
    monkeypatch.chdir(ROOT)
    (tmp_path / "tree" / "data" / "t-0").mkdir(parents=True)
    shutil.rmtree(tmp_path / "tree")
    assert not (tmp_path / "tree").exists()
