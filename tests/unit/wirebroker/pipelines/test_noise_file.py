"""Output to standard error's descriptor goes to a file that the error names."""

from __future__ import annotations

import os

import pytest

from wirebroker.pipelines.job import noise_file
from wirebroker.pipelines.job.noise_file import noise_in


def test_standard_error_is_a_file_for_a_time(tmp_path, capfd):
    path = tmp_path / "made" / "spark.log"
    for _ in range(2):
        with noise_in(path):
            os.write(2, b"noise\n")
    os.write(2, b"mine\n")
    assert path.read_bytes() == b"noise\n" * 2
    assert capfd.readouterr().err == "mine\n"


def test_a_failure_names_the_file_and_goes_on(tmp_path, capfd):
    path = tmp_path / "spark.log"
    with pytest.raises(OSError, match="Bad file"), noise_in(path):
        os.write(-1, b"noise\n")
    assert capfd.readouterr().err == f"{path} has what Spark and librdkafka printed\n"


def test_a_file_that_cannot_be_opened_costs_the_file_and_a_large_one_is_put_aside(
    tmp_path, capfd, monkeypatch
):
    (tmp_path / "file").touch()
    with noise_in(tmp_path / "file" / "spark.log"):
        os.write(2, b"noise\n")
    assert "its log cannot be opened" in capfd.readouterr().err
    monkeypatch.setattr(noise_file, "_MOST_BYTES", 3)
    path = tmp_path / "spark.log"
    path.write_bytes(b"large")
    with noise_in(path):
        os.write(2, b"new")
    assert path.read_bytes() == b"new"
    assert path.with_name("spark.log.old").read_bytes() == b"large"
