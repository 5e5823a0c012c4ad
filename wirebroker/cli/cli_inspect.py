"""Commands that read data directories; the exit status is 2 if a file is unreadable."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from wirebroker.cli.plumbing.output import Printer

if TYPE_CHECKING:
    from wirebroker.cli.plumbing.progress import Progress
    from wirebroker.config import Config

_DAMAGE_STATUS = 1

_json = click.option("--json", "as_json", is_flag=True, help="Print one JSON object per line.")
_progress = click.option(
    "--progress/--no-progress",
    default=None,
    help="Show progress on standard error. [default: if it is a terminal]",
)


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="FILE|DIR...")
@_json
@click.option("--records", is_flag=True, help="Show records, not only batches.")
@click.option("--deep", is_flag=True, help="Show the records of compressed batches too.")
@click.option(
    "--from-offset", type=click.IntRange(0), default=0, metavar="N", help="First offset to show."
)
@click.option("--to-offset", type=click.IntRange(0), metavar="N", help="Last offset to show.")
@click.option(
    "--max",
    "max_rows",
    type=click.IntRange(0),
    metavar="N",
    help="Show at most N rows of each file.",
)
@_progress
def dump(
    *,
    paths: tuple[str, ...],
    as_json: bool,
    records: bool,
    deep: bool,
    from_offset: int,
    to_offset: int | None,
    max_rows: int | None,
    progress: bool | None,
) -> int:
    """Print the contents of a data directory's files.

    Supported are segments, indexes, snapshots and checkpoints; records of internal topics are
    decoded. A folder means all supported files in it.
    """
    from wirebroker.inspect.rows.dump import (  # noqa: PLC0415 - keeps serve fast
        DumpOptions,
        UnknownFileError,
        paths_to_dump,
    )
    from wirebroker.inspect.rows.dump import dump as rows_of  # noqa: PLC0415
    from wirebroker.inspect.rows.json_lines import json_line  # noqa: PLC0415
    from wirebroker.inspect.rows.rows import OffsetRange  # noqa: PLC0415
    from wirebroker.inspect.rows.text_lines import TextLines  # noqa: PLC0415
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles  # noqa: PLC0415

    offset_range = (
        OffsetRange(from_offset) if to_offset is None else OffsetRange(from_offset, to_offset)
    )
    options = DumpOptions(records or deep, deep, offset_range, max_rows)
    files = ReadOnlyFiles()
    text = TextLines()
    printer = Printer()
    is_damaged = False
    with printer:
        try:
            selected_paths = paths_to_dump(files, paths, offset_range)
        except UnknownFileError as error:
            raise click.ClickException(str(error)) from None
        bar = _bar(progress, sum(files.data(path).size() for path in selected_paths))
        try:
            for row in rows_of(files, selected_paths, options, bar.add):
                is_damaged = is_damaged or row["type"] == "damage"
                bar.clear()
                for line in [json_line(row)] if as_json else text.lines(row):
                    printer.line(line)
        finally:
            bar.clear()
    return _DAMAGE_STATUS if is_damaged else 0


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def _bar(is_wanted: bool | None, total_bytes: int) -> Progress:
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415
    from wirebroker.cli.plumbing.progress import Progress  # noqa: PLC0415

    # On a terminal that also shows the rows, a progress line between them would flicker.
    is_shown = sys.stderr.isatty() and not sys.stdout.isatty() if is_wanted is None else is_wanted
    return Progress(sys.stderr if is_shown else None, total_bytes, SystemClock())


@click.command(short_help="Check data directories for damage.")
@click.argument(
    "directories", nargs=-1, required=True, metavar="DIR...", type=click.Path(exists=True)
)
@_json
@_progress
def verify(*, directories: tuple[str, ...], as_json: bool, progress: bool | None) -> int:
    """Check data directories for damage.

    Give all directories of one broker, running or stopped. Nothing is written. Errors remain after
    a restart; warnings are fixed by the next start or may be correct; notes are the rest. The exit
    status is 1 if there are errors.
    """
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415
    from wirebroker.inspect.rows.json_lines import json_line  # noqa: PLC0415
    from wirebroker.inspect.verify.findings import Finding, Severity, Tally  # noqa: PLC0415
    from wirebroker.inspect.verify.verify import Verification, size_of  # noqa: PLC0415
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles  # noqa: PLC0415

    paths = [str(Path(directory)).rstrip("/") or "/" for directory in directories]
    tally = Tally()
    files = ReadOnlyFiles()
    bar = _bar(progress, size_of(files, paths))
    printer = Printer()

    def tell(finding: Finding) -> None:
        tally.add(finding)
        bar.clear()
        printer.line(json_line(finding.as_row()) if as_json else finding.as_text())

    run = Verification(files, paths, clock=SystemClock(), emit=tell, on_bytes=bar.add)
    with printer:
        try:
            run.run()
        finally:
            bar.clear()
        counts = {f"{severity.value}_count": count for severity, count in tally.counts.items()}
        summary = {"type": "summary", "partition_count": run.partition_count, **counts}
        if as_json:
            printer.line(json_line(summary))
        else:
            words = ", ".join(_counted(count, kind.value) for kind, count in tally.counts.items())
            printer.line(f"{_counted(run.partition_count, 'partition')}: {words}")
            step = tally.next_step(directories)
            if step is not None:
                printer.line(step)
    return _DAMAGE_STATUS if tally.counts[Severity.ERROR] else 0


@click.command(short_help="Recover the data directories of a stopped broker.")
@click.argument(
    "directories", nargs=-1, required=True, metavar="DIR...", type=click.Path(exists=True)
)
@click.option("--dry-run", is_flag=True, help="Show what would be done, and write nothing.")
@click.option(
    "--full",
    is_flag=True,
    help="Read all segments, also those before the recovery point; records after damage are lost.",
)
@click.option(
    "--config",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="The broker's server.properties. Without it, the profile for one node applies.",
)
@_json
@_progress
def repair(
    *,
    directories: tuple[str, ...],
    dry_run: bool,
    full: bool,
    file: Path | None,
    as_json: bool,
    progress: bool | None,
) -> int:
    """Recover the data directories of a stopped broker.

    It does what the broker's next start would do: truncate logs at the first damage after their
    recovery point, rebuild indexes, remove leftovers, complete unfinished swaps. The exit status is
    1 if a log cannot be opened.
    """
    from wirebroker.base.clock import SystemClock  # noqa: PLC0415
    from wirebroker.inspect.repair import Repair, RepairError, as_text  # noqa: PLC0415
    from wirebroker.inspect.rows.json_lines import json_line  # noqa: PLC0415
    from wirebroker.inspect.verify.verify import size_of  # noqa: PLC0415
    from wirebroker.inspect.views.read_only_files import ReadOnlyFiles  # noqa: PLC0415

    paths = [str(Path(directory)).rstrip("/") or "/" for directory in directories]
    count = empty_count = 0
    bar = _bar(progress, size_of(ReadOnlyFiles(), paths))
    printer = Printer()

    def tell(row: dict[str, object]) -> None:
        nonlocal count, empty_count
        count += row["type"] == "change"
        bar.clear()
        if as_json:
            printer.line(json_line(row))
        elif row.get("action") == "created" and row["after_bytes"] == 0:
            empty_count += 1  # two for each partition that was never written
        else:
            printer.line(as_text(row))

    run = Repair(
        paths,
        config=_config_of(file),
        clock=SystemClock(),
        is_dry=dry_run,
        reads_all=full,
        tell=tell,
        on_bytes=bar.add,
    )
    with printer:
        try:
            run.run()
        except RepairError as error:
            raise click.ClickException(str(error)) from None
        finally:
            bar.clear()
        if as_json:
            summary = {
                "type": "summary",
                "is_dry_run": dry_run,
                "change_count": count,
                "problem_count": run.problem_count,
            }
            printer.line(json_line(summary))
        else:
            done = "would change" if dry_run else "changed"
            logs = _counted(run.problem_count, "log")
            unlisted = f" ({empty_count} new and empty, not listed)" if empty_count else ""
            printer.line(f"{_counted(count, 'file')} {done}{unlisted}, {logs} cannot be opened")
    return _DAMAGE_STATUS if run.problem_count else 0


def _config_of(file: Path | None) -> Config:
    from wirebroker.config import ConfigError  # noqa: PLC0415
    from wirebroker.config.sources.sources import load_config  # noqa: PLC0415

    try:
        return load_config(file=file, environment=os.environ, flags={})
    except ConfigError as error:
        raise click.ClickException(str(error)) from None
