"""`wirebroker bench` and `kafka-producer-perf-test` against a broker."""

from __future__ import annotations

import re
import sys

from wirebroker.cli import main as cli

LINE = re.compile(
    r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency,"
    r" [\d.]+ ms max latency(, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th)?\."
)


def test_bench_reads_what_it_wrote_and_deletes_the_topic(verbs):
    result = verbs.json("bench", "-n", "2000", "-s", "100", "-z", "lz4", "--batch", "4000")
    written, read = result["runs"]
    assert written["records"] == read["records"] == 2000
    assert written["records_per_s"] > 0
    assert written["p50_ms"] <= written["p99_ms"] <= written["most_ms"]
    assert result["topic"] not in [topic["name"] for topic in verbs.json("topic", "list")]
    lines = verbs.do("bench", "-n", "100", "--rate", "1000", "--acks", "1", "--keep").lines
    assert lines[0].split()[:4] == ["WHAT", "RECORDS", "SECONDS", "RECORDS-PER-S"]
    assert lines[-1].endswith("records/s over time")
    (name,) = [
        topic["name"] for topic in verbs.json("topic", "list") if topic["name"].startswith("wire")
    ]
    verbs.do("topic", "delete", name, "--yes")


def test_rate_limit_is_respected(verbs):
    (written, _) = verbs.json("bench", "-n", "100", "--rate", "200", "--batch", "1000")["runs"]
    assert written["seconds"] >= 0.45


def test_progress_is_shown_on_a_terminal(verbs, monkeypatch):
    few = ["bench", "-n", "140", "--rate", "200", "--batch", "1000"]
    assert "records/s" not in verbs.do(*few).err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    stderr = verbs.do(*few).err
    assert re.search(r"\rwrite +\d+%  [\d,]+ records/s ", stderr)
    assert stderr.endswith("\r\x1b[K")  # the line is cleared


def test_kafkas_script_prints_kafkas_lines(verbs, capsys, tmp_path):
    verbs.do("topic", "create", "perf")
    servers = f"bootstrap.servers={verbs.bootstrap}"
    arguments = ["kafka-producer-perf-test", "--topic", "perf", "--throughput", "-1"]
    props = ["--producer-props", servers, "acks=1", "batch.size=1000", "compression.type=lz4"]
    assert cli.run([*arguments, "--num-records", "500", "--record-size", "100", *props]) == 0
    match = LINE.fullmatch(capsys.readouterr().out.strip())
    assert match is not None
    assert match[1] == "500"
    assert match[2]
    file = tmp_path / "values"
    file.write_text("one\ntwo\n")
    payload_flags = ["--num-records", "50", "--payload-file", str(file), "--bootstrap-server"]
    slow = ["--throughput", "100", "--reporting-interval", "100", "--command-property"]
    assert cli.run([*arguments[:3], *payload_flags, verbs.bootstrap, *slow, "batch.size=10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert all(LINE.fullmatch(line) for line in lines)
    values = set(verbs.do("consume", "perf", "-o", "500", "-e").lines)
    assert values == {"one", "two"}
    assert cli.run([*arguments, "--num-records", "1", "--record-size", "1"]) == 1
    assert "name a broker" in capsys.readouterr().err
