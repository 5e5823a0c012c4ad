"""Output to standard error's descriptor goes to a file that the error names."""

from __future__ import annotations

import os

import pytest

from wirebroker.pipelines.job import noise_file
from wirebroker.pipelines.job.noise_file import noise_in


def test_standard_error_is_redirected_to_a_file_temporarily(tmp_path, capfd):
    path = tmp_path / "made" / "spark.log"
    for _ in range(2):
        with noise_in(path):
            os.write(2, b"noise\n")
    os.write(2, b"mine\n")
    assert path.read_bytes() == b"noise\n" * 2
    assert capfd.readouterr().err == "mine\n"


def test_failure_reports_the_file_and_is_raised(tmp_path, capfd):
    path = tmp_path / "spark.log"
    with pytest.raises(OSError, match="Bad file"), noise_in(path):
        os.write(-1, b"noise\n")
    assert capfd.readouterr().err == f"the output of Spark and librdkafka is in {path}\n"


def test_unopenable_noise_file_is_skipped_and_a_large_one_rotated(tmp_path, capfd, monkeypatch):
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
