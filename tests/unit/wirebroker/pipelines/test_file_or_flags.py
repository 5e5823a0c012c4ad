"""A verb's settings from a file or from flags."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from typing import Any

import pytest

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.file_or_flags import add_settings, settings_of
from wirebroker.pipelines.job.job_file import setting


@dataclass(frozen=True, kw_only=True)
class _Job:
    path: str = setting("paths", "where from")
    topics: str = setting("text", "which")
    most_rows: int = setting("count", "how many", 7)
    patience: float = setting("seconds", "how long", 300.0)
    choice: str = setting("text", "which way", "stop", ("stop", "skip"))
    metrics: str | None = setting("path", "what it tells", None)
    spark: dict[str, Any] = setting("table", "of Spark", {})


def parser_of(names: tuple[str, ...] | None = None) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="does it")
    add_settings(parser, _Job, names)
    return parser


def read(*words: str) -> _Job:
    return settings_of(parser_of().parse_args(words), _Job)


def test_flags_equal_the_same_settings_in_a_file(tmp_path):
    file = tmp_path / "job.toml"
    file.write_text(f'path = "{tmp_path}"\ntopics = "t"\nmost_rows = 9\n', encoding="utf-8")
    flags = ("--path", str(tmp_path), "--topics", "t", "--most-rows", "9")
    assert read(str(file)) == read(*flags) == _Job(path=str(tmp_path), topics="t", most_rows=9)
    file.write_text('path = "d"\ntopics = "t"\n[spark]\na = 1\n', encoding="utf-8")
    assert read(str(file)).spark == {"a": 1}
    assert read("--path", "d", "--topics", "t").most_rows == 7
    job = read("--path", "d", "--topics", "t", "--patience", "1.5", "--choice", "skip")
    assert (job.patience, job.choice) == (1.5, "skip")
    tables = {"spark": {"b": 2}}
    options = parser_of().parse_args(flags)
    assert settings_of(options, _Job, **tables).spark == {"b": 2}


def test_missing_flag_and_flag_next_to_a_file_are_refused(tmp_path):
    with pytest.raises(JobFileError, match="--topics or a file is missing: which"):
        read("--path", "d")
    with pytest.raises(JobFileError, match="--most-rows cannot be combined with a file"):
        read(str(tmp_path / "job.toml"), "--most-rows", "3")
    with pytest.raises(JobFileError, match="cannot be read"):
        read(str(tmp_path / "job.toml"))


@pytest.mark.parametrize("text", ["0", "-1", "many"])
def test_count_must_be_an_integer_of_at_least_1(capsys, text):
    with pytest.raises(SystemExit):
        read("--path", "d", "--topics", "t", f"--most-rows={text}")
    assert f"{text} is not a whole number of at least 1" in capsys.readouterr().err


def test_help_lists_each_setting_and_omits_excluded_flags():
    help_text = parser_of(("path",)).format_help()
    assert "--path" in help_text
    assert "--topics" not in help_text
    assert all(f"\n  {name} " in help_text for name in ("path", "topics", "most_rows", "spark"))


@pytest.mark.parametrize("flag", ["--patience=0", "--patience=inf", "--patience=x", "--choice=no"])
def test_seconds_and_choices_are_checked(capsys, flag):
    with pytest.raises(SystemExit):
        read("--path", "d", "--topics", "t", flag)
    assert flag.partition("=")[0] in capsys.readouterr().err
