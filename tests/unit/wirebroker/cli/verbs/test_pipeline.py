"""The verb for jobs on Spark: replaces the process, or reports missing parts."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from wirebroker.cli import main as cli


@pytest.mark.parametrize(
    ("words", "passed"), [([], ["--help"]), (["ingest", "--help"], ["ingest", "--help"])]
)
def test_pipeline_verb_is_replaced_by_the_job_process(monkeypatch, words, passed):
    ran = []
    monkeypatch.setattr(os, "execv", lambda *arguments: ran.append(arguments))
    assert cli.run(["pipeline", *words]) == 0
    assert ran == [(sys.executable, [sys.executable, "-m", "wirebroker.pipelines", *passed])]


def test_without_spark_the_package_to_install_is_named():
    # A module that is None cannot be imported, even if installed.
    text = (
        "import sys, runpy; sys.modules.update(pyspark=None, confluent_kafka=None);"
        " runpy.run_module('wirebroker.pipelines', run_name='__main__')"
    )
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 2
    assert "wirebroker: a pipeline needs " in done.stderr
    assert done.stderr.endswith(": pip install 'wirebroker[spark]'\n")
