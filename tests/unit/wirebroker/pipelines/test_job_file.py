"""Job files: required entries, and messages about mistakes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

from wirebroker.pipelines.job.errors import JobFileError
from wirebroker.pipelines.job.job_file import described, kafka_settings, load_job, setting

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class _Job:
    name: str = setting("text", "its name")
    source: str = setting("path", "where from", "in")
    kind: str = setting("text", "which", "json", ("json", "csv"))
    count: int = setting("count", "how many", 1)
    every: float | None = setting("seconds", "how often", None)
    is_quick: bool = setting("flag", "whether", False)
    names: list[str] | None = setting("texts", "which", None)
    logs: str = setting("paths", "where from", "")
    kafka: dict[str, Any] = setting("table", "clients", {})


def load(folder: Path, text: str) -> _Job:
    path = folder / "job.toml"
    path.write_text(text, encoding="utf-8")
    return load_job(path, _Job)


def test_job_has_settings_of_its_file_and_defaults(tmp_path):
    text = """
        name = "a"
        source = "data/in"
        every = 1
        names = ["x", "y"]
        kafka = {"bootstrap.servers" = "b:1", "acks" = 1, "tls" = true}
    """
    job = load(tmp_path, text)
    assert job.source == str(tmp_path / "data/in")
    assert (job.kind, job.count, job.every, job.names) == ("json", 1, 1, ["x", "y"])
    expected = {"bootstrap.servers": "b:1", "acks": "1", "tls": "true"}
    assert kafka_settings(tmp_path, job.kafka) == expected
    logs = load(tmp_path, 'name = "a"\nlogs = "one, /two"').logs
    assert logs == f"{tmp_path}/one,/two"
    assert not load(tmp_path, 'name = "a"\nlogs = ""').logs
    assert load(tmp_path, 'name = "a"\nlogs = "one,"').logs == f"{tmp_path}/one"
    assert load(tmp_path, 'name = "a"\nsource = "s3a://b/in"').source == "s3a://b/in"
    assert load(tmp_path, 'name = "a"\nsource = "file:///b/in"').source == "/b/in"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "name is missing: its name"),
        ("name = ", "is not valid TOML"),
        ('nam = "a"', "there is no setting nam; did you mean name?"),
        ("name = 7", "name = 7 is not a text"),
        (
            'name = "a"\nkind = "cvs"',
            "kind = 'cvs' is not one of ('json', 'csv'); did you mean csv?",
        ),
        ('name = "a"\ncount = 0', "count = 0 is not a whole number of at least 1"),
        ('name = "a"\ncount = true', "count = True is not a whole number of at least 1"),
        ('name = "a"\nevery = 0', "every = 0 is not a number of seconds above 0"),
        ('name = "a"\nevery = inf', "every = inf is not a number of seconds above 0"),
        ('name = ""', "name is empty: its name"),
        ('name = "a"\nsource = ""', "source is empty"),
        ('name = "a"\nis_quick = 1', "is_quick = 1 is not true or false"),
        ('name = "a"\nnames = [1]', "names = [1] is not a list of texts"),
        ('name = "a"\nkafka = []', "kafka = [] is not a table"),
    ],
)
def test_misspelled_setting_is_refused_with_a_hint(tmp_path, text, message):
    with pytest.raises(JobFileError) as raised:
        load(tmp_path, text)
    assert message in str(raised.value)


def test_missing_job_file_is_reported(tmp_path):
    with pytest.raises(JobFileError, match="cannot be read"):
        load_job(tmp_path / "job.toml", _Job)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({}, 'no "bootstrap.servers"'),
        ({"bootstrap.server": "b:1"}, 'is "bootstrap.server" a typo?'),
        ({"bootstrap.servers": "b:1", "group.id": "x"}, "group.id is set by the job"),
    ],
)
def test_client_settings_are_checked(tmp_path, table, message):
    with pytest.raises(JobFileError) as raised:
        kafka_settings(tmp_path, table)
    assert message in str(raised.value)


def test_help_lists_each_setting():
    lines = list(described(_Job))
    assert lines[0].split() == ["name", "its", "name;", "a", "text"]
    assert lines[2].endswith("which; json or csv [json]")
