"""`wirebroker pipeline NAME JOB.toml`, which imports nothing of Spark."""

from __future__ import annotations

import os
import sys

import click


@click.command(context_settings={"ignore_unknown_options": True}, add_help_option=False)
@click.argument("words", metavar="[NAME] [JOB.toml]", nargs=-1, type=click.UNPROCESSED)
def pipeline(words: tuple[str, ...]) -> None:
    """Run a Spark job (requires wirebroker[spark]).

    NAME is ingest, replay, windows, quality, archive, verify or restore; `wirebroker pipeline NAME
    --help` describes the job's file. Java 17 is required.
    """
    arguments = [sys.executable, "-m", "wirebroker.pipelines", *(words or ("--help",))]
    # The job replaces this process, so that it receives signals.
    os.execv(sys.executable, arguments)  # noqa: S606 - our own module, and no shell
