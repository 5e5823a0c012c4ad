"""`wirebroker bench` and `kafka-producer-perf-test` against a broker."""

from __future__ import annotations

import re
import sys

from wirebroker.cli import main as cli

LINE = re.compile(
    r"(\d+) records sent, [\d.]+ records/sec \([\d.]+ MB/sec\), [\d.]+ ms avg latency,"
    r" [\d.]+ ms max latency(, \d+ ms 50th, \d+ ms 95th, \d+ ms 99th, \d+ ms 99\.9th)?\."
)


def test_what_is_written_is_read_and_the_topic_goes(verbs):
    found = verbs.json("bench", "-n", "2000", "-s", "100", "-z", "lz4", "--batch", "4000")
    written, read = found["runs"]
    assert written["records"] == read["records"] == 2000
    assert written["records_per_s"] > 0
    assert written["p50_ms"] <= written["p99_ms"] <= written["most_ms"]
    assert found["topic"] not in [each["name"] for each in verbs.json("topic", "list")]
    lines = verbs.do("bench", "-n", "100", "--rate", "1000", "--acks", "1", "--keep").lines
    assert lines[0].split()[:4] == ["WHAT", "RECORDS", "SECONDS", "RECORDS-PER-S"]
    assert lines[-1].endswith("records/s over time")
    (kept,) = [
        each["name"] for each in verbs.json("topic", "list") if each["name"].startswith("wire")
    ]
    verbs.do("topic", "delete", kept, "--yes")


def test_a_rate_is_kept(verbs):
    (written, _) = verbs.json("bench", "-n", "100", "--rate", "200", "--batch", "1000")["runs"]
    assert written["seconds"] >= 0.45


def test_a_terminal_is_told_how_far_it_is(verbs, monkeypatch):
    few = ["bench", "-n", "140", "--rate", "200", "--batch", "1000"]
    assert "records/s" not in verbs.do(*few).err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    told = verbs.do(*few).err
    assert re.search(r"\rwrite +\d+%  [\d,]+ records/s ", told)
    assert told.endswith("\r\x1b[K")  # the line is cleared


def test_kafkas_script_prints_kafkas_lines(verbs, capsys, tmp_path):
    verbs.do("topic", "create", "perf")
    servers = f"bootstrap.servers={verbs.bootstrap}"
    arguments = ["kafka-producer-perf-test", "--topic", "perf", "--throughput", "-1"]
    props = ["--producer-props", servers, "acks=1", "batch.size=1000", "compression.type=lz4"]
    assert cli.run([*arguments, "--num-records", "500", "--record-size", "100", *props]) == 0
    found = LINE.fullmatch(capsys.readouterr().out.strip())
    assert found is not None
    assert found[1] == "500"
    assert found[2]
    file = tmp_path / "values"
    file.write_text("one\ntwo\n")
    more = ["--num-records", "50", "--payload-file", str(file), "--bootstrap-server"]
    slow = ["--throughput", "100", "--reporting-interval", "100", "--command-property"]
    assert cli.run([*arguments[:3], *more, verbs.bootstrap, *slow, "batch.size=10"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert all(LINE.fullmatch(each) for each in lines)
    values = set(verbs.do("consume", "perf", "-o", "500", "-e").lines)
    assert values == {"one", "two"}
    assert cli.run([*arguments, "--num-records", "1", "--record-size", "1"]) == 1
    assert "name a broker" in capsys.readouterr().err
