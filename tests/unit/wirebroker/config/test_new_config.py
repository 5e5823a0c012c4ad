"""A config added in one file of a project copy is found everywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from tests.support.harness.project_files import built_copy_of_the_project
from tests.unit.wirebroker.config import new_config_questions

if TYPE_CHECKING:
    from pathlib import Path

BROKER_ROW = """
    integer(
        "wirebroker.new.thing",
        42,
        "What brokers did not have.",
        1,
        mutability=CLUSTER_WIDE,
        profile="43",
    ),
)
"""
TOPIC_FIELD = """
    new_thing_ms: int = long(42, "What topics did not have.", "log.new.thing.ms", at_least=1)

    @property
    def is_compacted"""
TOPICS_OWN, CLUSTER_WIDE, STATIC = 1, 3, 4


@pytest.fixture(scope="module")
def answers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("new_config")
    copy = built_copy_of_the_project(folder / "source")
    configs = copy / "wirebroker" / "config"
    _replace_last(configs / "table" / "compaction.py", "\n)\n", BROKER_ROW)
    _replace_last(
        configs / "rows" / "topic.py", "\n    @property\n    def is_compacted", TOPIC_FIELD
    )
    done = subprocess.run(
        [sys.executable, "-m", new_config_questions.__name__, str(folder)],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    results: dict[str, Any] = json.loads(done.stdout)
    return results


def _replace_last(path: Path, old: str, new: str) -> None:
    before, separator, after = path.read_text(encoding="utf-8").rpartition(old)
    assert separator
    path.write_text(before + new + after, encoding="utf-8")


@pytest.mark.parametrize(
    ("where", "value"),
    [("without a file", 43), ("default", 42), ("file", 7), ("environment", 8), ("flag", 9)],
)
def test_new_config_is_read_from_every_source(
    answers: dict[str, Any], where: str, value: int
) -> None:
    assert answers[where] == [value], "and nothing is warned of"


def test_new_config_out_of_range_is_refused(answers: dict[str, Any]) -> None:
    assert answers["refused"] == "wirebroker.new.thing=0 cannot be used: it must be at least 1"


def test_misspelled_new_config_is_refused_with_a_hint(answers: dict[str, Any]) -> None:
    assert "did you mean wirebroker.new.thing?" in answers["hint"]


def test_new_broker_config_is_described_and_altered(answers: dict[str, Any]) -> None:
    of_topics = ["log.new.thing.ms", "60", False, STATIC]
    name = "wirebroker.new.thing"
    assert answers["before"] == [of_topics, [name, "50", False, STATIC]]
    assert answers["codes"] == [0, 42]
    assert answers["after"] == [of_topics, [name, "51", False, CLUSTER_WIDE]]


def test_new_topic_config_defaults_to_the_broker_config(answers: dict[str, Any]) -> None:
    assert answers["topic"] == [["new.thing.ms", "70", False, TOPICS_OWN]]
    assert answers["settings"] == 42


def test_new_config_appears_in_documentation_and_cli(answers: dict[str, Any]) -> None:
    assert answers["text"] == ["log.new.thing.ms=42", "wirebroker.new.thing=42"]
    # The tables of the profile, the brokers and the topics.
    assert [line.split("`")[1] for line in answers["docs"]] == [
        "wirebroker.new.thing",
        "log.new.thing.ms",
        "wirebroker.new.thing",
        "new.thing.ms",
    ]
