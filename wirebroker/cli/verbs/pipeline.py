"""`wirebroker pipeline NAME JOB.toml`: a job on Spark, in this process's place.

Nothing of it is imported here: a broker needs no Spark (spark_it/README.md).
"""

from __future__ import annotations

import os
import sys

import click


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", metavar="[NAME] [JOB.toml]", nargs=-1, type=click.UNPROCESSED)
def pipeline(words: tuple[str, ...]) -> None:
    """Run a job on Spark, where wirebroker[spark] is installed.

    ingest, replay, windows, quality, archive, verify or restore; `wirebroker pipeline NAME
    --help` tells what a job's file says. Java 17 must be there.
    """
    arguments = [sys.executable, "-m", "wirebroker.pipelines", *(words or ("--help",))]
    # In this process's place, so that signals are the job's.
    os.execv(sys.executable, arguments)  # noqa: S606 - our own module, and no shell
