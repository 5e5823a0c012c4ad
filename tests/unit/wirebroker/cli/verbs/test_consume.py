"""`wirebroker consume` against a broker."""

from __future__ import annotations

import itertools
import json
import signal
import subprocess
import sys

import pytest

from tests.support.brokers.servers import ONE_NODE, ThreadedServer, config_of
from tests.support.cli.verbs import Verbs
from wirebroker.cli.plumbing.record_format import writer_of
from wirebroker.client.records.json_lines import json_line_of
from wirebroker.client.topics.leaders import TopicPartition
from wirebroker.codecs.records.record import Record

_numbers = itertools.count()
PLACE = TopicPartition("orders", 3)


@pytest.fixture
def five(verbs, request):
    name = request.node.name.replace("[", "-").rstrip("]")
    verbs.do("topic", "create", name, "-p", "2")
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", name, "-p", "0")
    verbs.feed(b"other\n", "produce", name, "-p", "1")
    return name


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        (["--from-beginning"], "01234"),
        (["-o", "start"], "01234"),
        (["-o", "3"], "34"),
        (["-o", "-2"], "34"),
        (["-o", "-99"], "01234"),
        (["-o", "99"], ""),
        (["-o", "end"], ""),
        ([], ""),
        (["--from-time", "1h"], "01234"),
        (["--from-time", "0"], "01234"),
        (["--from-time", "2099-01-01"], ""),
        (["-o", "1", "-n", "2"], "12"),
    ],
)
def test_consuming_begins_and_ends_where_requested(verbs, flags, expected):
    name = f"begin-{next(_numbers)}"
    verbs.do("topic", "create", name)
    verbs.feed(b"0\n1\n2\n3\n4\n", "produce", name)
    result = verbs.do("consume", name, "--exit", *flags)
    assert result.out == "".join(f"{value}\n" for value in expected)


def test_partitions_can_be_chosen(verbs, five):
    assert verbs.do("consume", five, "-o", "start", "-e", "-p", "1").out == "other\n"
    both = verbs.do("consume", five, "-o", "start", "-e").lines
    assert sorted(both) == ["0", "1", "2", "3", "4", "other"]
    assert "there is no partition 2" in verbs.run("consume", five, "-e", "-p", "2").err


def test_several_topics_are_read_together(verbs, five):
    verbs.do("topic", "create", "second")
    verbs.feed(b"x\n", "produce", "second")
    result = verbs.do("consume", five, "second", "-o", "start", "-e", "-f", "%t %s\\n")
    assert len(result.lines) == 7
    assert "second x" in result.lines


def test_json_output_is_one_object_per_line(verbs, five):
    for flags in (["--json"], ["--output", "json"]):
        (line,) = verbs.do("consume", five, "-o", "start", "-p", "1", "-n", "1", *flags).lines
        decoded = json.loads(line)
        assert decoded.pop("timestamp") > 1_600_000_000_000
        assert decoded == {
            "topic": five,
            "partition": 1,
            "offset": 0,
            "key": None,
            "value": "other",
            "headers": [],
        }


def test_deleted_records_at_the_start_are_skipped(verbs, five):
    verbs.do("topic", "trim", five, "--before-offset", "3", "-p", "0", "--yes")
    assert verbs.do("consume", five, "-o", "0", "-e", "-p", "0").lines == ["3", "4"]


def test_later_records_are_printed_until_a_signal(verbs, five):
    command = [sys.executable, "-m", "wirebroker", "consume", five, "-o", "-1", "-p", "0"]
    with subprocess.Popen(
        [*command, "-b", verbs.bootstrap], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"4\n"
        verbs.feed(b"5\n", "produce", five, "-p", "0")
        assert process.stdout.readline() == b"5\n"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (143, b"", b"")


def test_closed_output_ends_consuming(verbs, five):
    consume = f"{sys.executable} -m wirebroker consume {five} -o start -b {verbs.bootstrap}"
    # When the second record comes, `head` has exited: the failed write ends the verb.
    command = f"set -o pipefail; {consume} -f '%s\\n' -p 0 | head -n 1"
    with subprocess.Popen(
        ["bash", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"0\n"
        while process.poll() is None:
            verbs.feed(b"more\n", "produce", five, "-p", "0")
        out, err = process.communicate()
    assert (process.returncode, out, err) == (0, b"", b"")


def test_consuming_continues_after_a_broker_restart(tmp_path, capsys):
    config = config_of(tmp_path / "data")
    with ThreadedServer(config) as server:
        host, port = server.address
        verbs = Verbs(f"{host}:{port}", capsys)
        verbs.do("topic", "create", "kept")
        verbs.feed(b"before\n", "produce", "kept")
        command = [sys.executable, "-m", "wirebroker", "consume", "kept", "-o", "start"]
        process = subprocess.Popen([*command, "-b", verbs.bootstrap], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"before\n"
    again = config_of(tmp_path / "data", settings={"listeners": f"PLAINTEXT://{host}:{port}"})
    with process, ThreadedServer(again):
        verbs.feed(b"after\n", "produce", "kept")
        assert process.stdout.readline() == b"after\n"
        process.send_signal(signal.SIGINT)


def test_invalid_arguments_are_refused(verbs):
    assert verbs.run("consume", "t", "-o", "1", "--from-beginning").status == 2
    assert verbs.run("consume", "t", "-o", "x").status == 2
    assert verbs.run("consume", "t", "--json", "-f", "%s").status == 2
    assert "%x is unknown" in verbs.run("consume", "t", "-f", "%x").err
    assert verbs.run("consume").status == 2
    assert "did you mean" not in verbs.run("consume", "zzzz").err


def test_format_supports_kcat_placeholders():
    record = Record(7, 1234, b"key", b"value", [("a", b"1"), ("b", None)])
    written = writer_of(r"%t|%p|%o|%T|%k|%K|%s|%S|%h|%%|\t\\\n\0")(PLACE, record)
    assert written == b"orders|3|7|1234|key|3|value|5|a=1,b=|%|\t\\\n\0"
    assert writer_of("%k%s%K%S")(PLACE, Record(0, 0, None, None)) == b"-1-1"


@pytest.mark.parametrize("text", ["%", "a\\", "%z", "\\x"])
def test_invalid_format_is_refused(text):
    with pytest.raises(ValueError, match=r"format"):
        writer_of(text)


def test_json_encodes_binary_values():
    record = Record(0, 0, b"\xff", b"\xe2\x82\xac", [("h\udcff", None)])
    decoded = json.loads(json_line_of(PLACE, record))
    assert decoded["key"] == {"base64": "/w=="}
    assert decoded["value"] == "€"
    assert decoded["headers"] == [{"key": "h\udcff", "value": None}]
    plain = json_line_of(PLACE, record._replace(headers=()))
    assert "€".encode() in plain


@pytest.mark.timeout(60)
@pytest.mark.parametrize("flags", [[], ["--group", "readers"]], ids=["alone", "group"])
def test_consuming_without_read_permission_is_an_error(guarded, flags):
    result = guarded.run("consume", "secret", "--from-beginning", *flags)
    assert result.status == 1
    assert "this user may not do that with the topic (TOPIC_AUTHORIZATION_FAILED)" in result.err


@pytest.fixture
def guarded(tmp_path, capsys):
    """Verbs that call a broker whose topic `secret` no user may read."""
    settings = {
        **ONE_NODE,
        "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
        "allow.everyone.if.no.acl.found": "true",
    }
    with ThreadedServer(config_of(tmp_path / "data", settings=settings)) as server:
        host, port = server.address
        verbs = Verbs(f"{host}:{port}", capsys)
        verbs.do("topic", "create", "secret")
        may = ("--allow", "User:*", "--operation", "describe")
        verbs.do("acl", "create", *may, "--topic", "secret")
        yield verbs
