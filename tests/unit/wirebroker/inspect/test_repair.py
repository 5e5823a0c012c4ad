"""`wirebroker repair` repairs like a start; a dry run reports the same.

After a random bit flip, verify reports the file or nothing else contradicts it (`is_as_good`).
"""

from __future__ import annotations

import json
import shutil

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.brokers.servers import broker_of, running
from tests.support.coordinators.kit import new_topic
from tests.unit.wirebroker.inspect.directory_kit import contents, create_topics, rows, run
from wirebroker.base.clock import SystemClock
from wirebroker.cli import main as cli
from wirebroker.cli.plumbing import progress
from wirebroker.config import Config
from wirebroker.coordinator.controller.features.feature_control import SUPPORTED_FEATURES
from wirebroker.inspect.repair import Repair
from wirebroker.inspect.rows.small_file_rows import clean_shutdown_row, quorum_state_row
from wirebroker.storage.checkpoints import parse_rows
from wirebroker.storage.meta_properties import parse_meta_properties

FIRST = "00000000000000000000"


def test_clean_directory_is_unchanged(data, capsys):
    before = contents(data)
    status, reported = rows(capsys, "repair", data)
    assert status == 0
    assert [row["type"] for row in reported] == ["summary"]
    assert contents(data) == before


def test_torn_end_is_truncated(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    log = next((data / "plain-0").glob("*105.log"))
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(b"torn")
    index = data / "plain-0" / f"{FIRST}.timeindex"
    index.unlink()
    (data / "plain-0" / "00000000000000000003.log.deleted").touch()
    before = contents(data)
    _, dry = rows(capsys, "repair", data, "--dry-run")
    assert contents(data) == before
    status, done = rows(capsys, "repair", data)
    assert status == 0
    assert done[:-1] == dry[:-1]
    changes = {row["path"].removeprefix(f"{data}/plain-0/"): row for row in done if "action" in row}
    assert changes[log.name]["action"] == "cut"
    assert changes[log.name]["before_bytes"] == size + 4
    assert changes[log.name]["after_bytes"] == size
    assert changes[index.name]["action"] == "created"
    assert changes["00000000000000000003.log.deleted"]["action"] == "removed"
    _, reported = rows(capsys, "verify", data)
    assert [row["type"] for row in reported] == ["summary"]


async def test_start_after_a_repair_changes_nothing(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    log = next((data / "plain-0").glob("*105.log"))
    with log.open("ab") as file:
        file.write(b"torn")
    rows(capsys, "repair", data)
    before = contents(data)

    async with running(data) as server:
        assert {
            replica.topic: replica.log.log_end_offset for replica in broker_of(server).replicas
        }["plain"] == 156
    after = contents(data)
    for name in before:
        if name.startswith(("plain", "compact", "__consumer")):
            assert after[name] == before[name], name


@pytest.mark.parametrize("is_dry", [True, False])
@pytest.mark.parametrize("reads_all", [True, False])
def test_progress_reaches_exactly_the_size_of_all_logs(data, is_dry, reads_all):
    (data / ".kafka_cleanshutdown").unlink()
    total = sum(path.stat().st_size for path in data.glob("*/*.log"))
    steps: list[int] = []
    run = Repair(
        [str(data)],
        config=Config(),
        clock=SystemClock(),
        is_dry=is_dry,
        reads_all=reads_all,
        tell=lambda _: None,
        on_bytes=steps.append,
    )
    run.run()
    assert sum(steps) == total


def test_progress_is_shown_on_request(data, capsys, monkeypatch):
    monkeypatch.setattr(progress, "_INTERVAL_S", 0.0)
    assert cli.run(["repair", str(data), "--dry-run", "--progress"]) == 0
    assert "100 %" in capsys.readouterr().err


def test_junk_after_a_cleanly_stopped_log_is_truncated(data, capsys):
    log = next((data / "plain-0").glob("*105.log"))
    size = log.stat().st_size
    with log.open("ab") as file:
        file.write(bytes(100))
    _, text = run(capsys, "repair", data)
    assert f"cut       {log}: 100 bytes, {size} are left" in text


def test_text_output_lists_the_changes(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    log = next((data / "plain-0").glob("*105.log"))
    with log.open("ab") as file:
        file.write(b"torn")
    _, text = run(capsys, "repair", data, "--dry-run")
    assert f"cut       {log}: 4 bytes" in text
    assert text.endswith("3 files would change, 0 logs cannot be opened\n")
    _, text = run(capsys, "repair", data)
    assert text.endswith("3 files changed, 0 logs cannot be opened\n")


def test_text_output_counts_new_empty_files_without_listing_them(data, capsys):
    (data / ".kafka_cleanshutdown").unlink()
    empty = next(path for path in sorted(data.glob("*/*.index")) if path.stat().st_size == 0)
    empty.unlink()
    _, text = run(capsys, "repair", data)
    assert str(empty) not in text
    assert text.endswith("3 files changed (1 new and empty, not listed), 0 logs cannot be opened\n")
    assert empty.exists()


def test_full_repair_reads_all_records(data, capsys):
    log = data / "plain-0" / f"{FIRST}.log"
    content = bytearray(log.read_bytes())
    content[100] ^= 1
    log.write_bytes(content)
    _, reported = rows(capsys, "repair", data)
    assert [row["type"] for row in reported] == ["summary"]  # like a start, it inspects nothing
    _, dry = rows(capsys, "repair", data, "--full", "--dry-run")
    _, done = rows(capsys, "repair", data, "--full")
    assert done[:-1] == dry[:-1]
    assert log.stat().st_size == 0
    # Whether the controller acknowledged it is unknown: it does not learn of a clean stop.
    assert json.loads((data / ".kafka_cleanshutdown").read_text())["brokerEpoch"] == -1
    assert sorted(path.name for path in (data / "plain-0").glob("*.log")) == [log.name]
    _, reported = rows(capsys, "verify", data)
    assert not [row for row in reported if row.get("severity") == "error"]


async def test_a_directory_in_use_is_refused(data, capsys):
    async with running(data):
        before = contents(data)
        status = cli.run(["repair", str(data)])
        assert (status, before == contents(data)) == (2, True)
    assert "is in use by a broker" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("missing", "words"),
    [
        ("meta.properties", "is not a data directory"),
        ("__cluster_metadata-0", "no directory has the metadata log"),
    ],
)
def test_path_without_a_data_directory_is_refused(data, capsys, missing, words):
    path = data / missing
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    before = contents(data)
    assert cli.run(["repair", str(data), "--dry-run"]) == 2
    assert words in capsys.readouterr().err
    assert contents(data) == before


def test_directory_of_a_newer_broker_is_unchanged(data, capsys, monkeypatch):
    (data / ".kafka_cleanshutdown").unlink()
    before = contents(data)
    monkeypatch.setitem(SUPPORTED_FEATURES, "metadata.version", (7, 20))
    assert cli.run(["repair", str(data)]) == 2
    assert "finalized metadata.version at level 33" in capsys.readouterr().err
    assert contents(data) == before
    status, reported = rows(capsys, "verify", data)
    assert status == 1
    assert "a start cannot read the metadata log" in reported[0]["message"]


@settings(max_examples=20, deadline=None)
@given(
    where=st.randoms(use_true_random=False),
    is_clean=st.booleans(),
)
def test_flipped_bit_is_found_and_dry_run_matches_the_repair(
    made, tmp_path_factory, where, is_clean
):
    data = shutil.copytree(made, tmp_path_factory.mktemp("flip") / "data")
    if not is_clean:
        (data / ".kafka_cleanshutdown").unlink()
    names = sorted(name for name, content in contents(data).items() if content)
    name = where.choice(names)
    original = (data / name).read_bytes()
    content = bytearray(original)
    content[where.randrange(len(content))] ^= 1 << where.randrange(8)
    (data / name).write_bytes(content)
    lines: list[str] = []
    status = _run(["verify", str(data), "--json"], lines)
    is_found = len(lines) > 1
    assert is_found or is_as_good(name, original, bytes(content), is_clean=is_clean), (name, status)
    dry: list[str] = []
    done: list[str] = []
    before = contents(data)
    dry_status = _run(["repair", str(data), "--dry-run", "--full", "--json"], dry)
    assert contents(data) == before
    assert _run(["repair", str(data), "--full", "--json"], done) == dry_status
    assert done[:-1] == dry[:-1]
    shutil.rmtree(data.parent)


def is_as_good(name: str, before: bytes, after: bytes, *, is_clean: bool) -> bool:
    """Return whether nothing else contradicts a changed file."""
    try:
        match name.rpartition("/")[2]:
            case "meta.properties":  # the cluster's id; comments
                old, new = (parse_meta_properties(content.decode()) for content in (before, after))
                return new[1:] == old[1:]
            case "replication-offset-checkpoint":  # the broker raises it
                return _is_lower(before, after)
            case "recovery-point-offset-checkpoint":  # a start after a kill reads more
                return not is_clean and _is_lower(before, after)
            case ".kafka_cleanshutdown":  # the broker's epoch
                return bool(clean_shutdown_row(after))
            case "quorum-state":  # a later epoch; the voted candidate
                epochs = [quorum_state_row(content)["leaderEpoch"] for content in (before, after)]
                return epochs == sorted(epochs)
    except ValueError:
        pass
    return False


def _is_lower(before: bytes, after: bytes) -> bool:
    old, new = (parse_rows(content, columns=3) for content in (before, after))
    return all(
        old_row[:2] == new_row[:2] and int(new_row[2]) <= int(old_row[2])
        for old_row, new_row in zip(old, new, strict=True)
    )


def _run(arguments: list[str], lines: list[str]) -> int:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("wirebroker.cli.cli_inspect.Printer.line", lambda _, text: lines.append(text))
        return cli.run(arguments)


async def test_dry_run_preallocates_no_segment(tmp_path, capsys):
    async with running(tmp_path) as server:
        broker = broker_of(server)
        configs = {"preallocate": "true", "segment.bytes": str(1 << 20)}
        topics = [new_topic("t", configs={**configs})]
        await create_topics(broker, topics)
    (tmp_path / ".kafka_cleanshutdown").unlink()
    for file in (tmp_path / "t-0").glob(f"{FIRST}.*"):
        file.unlink()
    before = contents(tmp_path)
    rows(capsys, "repair", tmp_path, "--dry-run")
    assert contents(tmp_path) == before
    status, _ = rows(capsys, "repair", tmp_path)
    assert status == 0
    assert (tmp_path / "t-0" / f"{FIRST}.log").stat().st_size == 0
