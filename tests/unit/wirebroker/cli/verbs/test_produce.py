"""`wirebroker produce` against a broker."""

from __future__ import annotations

import itertools
import json
import random
import signal
import subprocess
import sys

import pytest

from tests.support.cli.script_transcripts import our_scripts
from wirebroker.client.records.partitioning import Partitioner, murmur2


def records(verbs, topic, form="%p %k=%s\\n"):
    return verbs.do("consume", topic, "--from-beginning", "--exit", "-f", form).lines


def test_each_line_becomes_a_record(verbs):
    verbs.do("topic", "create", "lines")
    result = verbs.feed(b"one\n\nthree", "produce", "lines")
    assert result == (0, "lines-0: 3 stored, offsets 0 to 2\n", "")
    assert records(verbs, "lines") == ["0 =one", "0 =", "0 =three"]
    again = verbs.feed(b"four\n", "produce", "lines", "--output", "json")
    assert '"first_offset": 3' in again.out


def test_empty_input_is_not_an_error(verbs):
    verbs.do("topic", "create", "empty")
    assert verbs.feed(b"", "produce", "empty") == (0, "", "")


def test_keys_and_headers_are_produced(verbs):
    verbs.do("topic", "create", "keyed")
    result = verbs.feed(
        b"a::1\nb::2::3\n", "produce", "keyed", "--key-separator", "::", "-H", "x=y"
    )
    assert result.status == 0
    verbs.feed(b"v\n", "produce", "keyed", "-k", "K")
    form = "%k=%s %h\\n"
    assert records(verbs, "keyed", form) == ["a=1 x=y", "b=2::3 x=y", "K=v "]


def test_line_without_a_key_is_an_error_naming_the_line(verbs):
    verbs.do("topic", "create", "keyless")
    result = verbs.feed(b"a:1\nb\n", "produce", "keyless", "--key-separator", ":")
    assert result.status == 1
    assert result.err.startswith(
        "wirebroker: line 2 has no ':' between key and value; 1 record before"
    )
    assert records(verbs, "keyless") == ["0 a=1"]
    result = verbs.feed(b"b\na:1\n", "produce", "keyless", "--key-separator", ":")
    assert result.err.endswith("; 0 records before it are stored\n")
    assert records(verbs, "keyless") == ["0 a=1"]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (r"\t", b"a\t1\n"),
        ("\t", b"a\t1\n"),
        (r"\\", b"a\\1\n"),
        (r"\0", b"a\x001\n"),
        ("é", "aé1\n".encode()),
    ],
)
def test_the_separator_has_the_escapes_of_a_format(verbs, text, line):
    verbs.do("topic", "create", "separated", "--if-not-exists")
    assert verbs.feed(line, "produce", "separated", "--key-separator", text).status == 0
    assert records(verbs, "separated")[-1] == "0 a=1"


@pytest.mark.parametrize("text", [r"\x", "a\\"])
def test_separator_with_an_unknown_escape_is_refused(verbs, text):
    result = verbs.feed(b"a:1\n", "produce", "t", "--key-separator", text)
    assert (result.status, r"write \\ for a backslash" in result.err) == (2, True)


def test_the_console_producer_writes_the_lines_before_a_bad_one(verbs, capsys):
    verbs.do("topic", "create", "console")
    run = our_scripts(capsys)
    flags = ["--bootstrap-server", verbs.bootstrap, "--topic", "console"]
    keyed = ["--reader-property", "parse.key=true", "--reader-property", "key.separator=:"]
    result = run("kafka-console-producer", [*flags, *keyed], "a:1\nb\nc:3\n")
    assert (result.status, "on line number 2" in result.err) == (1, True)
    assert records(verbs, "console") == ["0 a=1"]


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_batches_can_be_compressed(verbs, codec):
    verbs.do("topic", "create", codec)
    assert verbs.feed(b"a\n" * 500, "produce", codec, "-z", codec).status == 0
    assert records(verbs, codec, "%s") == ["a" * 500]


def test_records_beyond_one_batch_keep_their_order(verbs):
    verbs.do("topic", "create", "many", "-p", "3")
    count = 60_000
    lines = b"".join(b"%d:%0100d\n" % (number % 100, number) for number in range(count))
    assert verbs.feed(lines, "produce", "many", "--key-separator", ":").status == 0
    numbers: dict[str, list[int]] = {}
    for line in records(verbs, "many"):
        partition, _, rest = line.partition(" ")
        numbers.setdefault(partition, []).append(int(rest.partition("=")[2]))
    assert len(numbers) == 3
    assert all(values == sorted(values) for values in numbers.values())
    assert sorted(itertools.chain(*numbers.values())) == list(range(count))


def test_a_partition_can_be_named(verbs):
    verbs.do("topic", "create", "named", "-p", "3")
    verbs.feed(b"x\n", "produce", "named", "-p", "2", "-k", "any")
    assert records(verbs, "named") == ["2 any=x"]
    result = verbs.feed(b"x\n", "produce", "named", "-p", "3")
    assert result.err == "wirebroker: there is no partition 3: named has 3, from 0\n"


def test_missing_topic_fails_quickly(verbs):
    verbs.do("topic", "create", "orders")
    result = verbs.feed(b"x\n", "produce", "order")
    assert (result.status, result.out) == (1, "")
    assert result.err.endswith("there is no topic order; did you mean orders?\n")


def test_a_record_that_is_too_large_is_refused_with_a_reason(verbs):
    verbs.do("topic", "create", "small", "-c", "max.message.bytes=1000")
    result = verbs.feed(b"x" * 2000, "produce", "small")
    assert result.status == 1
    assert "MESSAGE_TOO_LARGE" in result.err
    assert result.err.endswith("; 0 records before it are stored\n")


def test_contradicting_flags_are_refused(verbs):
    assert verbs.feed(b"", "produce", "t", "-k", "a", "--key-separator", ":").status == 2
    assert verbs.feed(b"", "produce", "t", "--key-separator", "").status == 2
    assert verbs.feed(b"", "produce", "t", "-H", "a").status == 2
    assert verbs.feed(b"", "produce", "t", "-z", "lzma").status == 2


@pytest.mark.usefixtures("_interruptible")
def test_lines_are_sent_as_they_arrive_until_a_signal(verbs):
    verbs.do("topic", "create", "tailed")
    command = [sys.executable, "-m", "wirebroker", "produce", "tailed", "-b", verbs.bootstrap]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"first\nhal")
        process.stdin.flush()
        # It exits when the record arrives, although the other end of the pipe is open.
        assert verbs.do("consume", "tailed", "-o", "start", "-n", "1").lines == ["first"]
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err.strip()) == (130, b"", b"")


def test_lines_of_json_are_records_as_consume_prints_them(verbs):
    verbs.do("topic", "create", "json-lines", "json-copies", "-p", "2")
    lines = (
        b'{"key": "k", "value": "v", "headers": [{"key": "a", "value": "1"}]}\n'
        b'{"key": null, "value": {"base64": "/wA="}, "offset": 7, "other": 1}\n'
        b'{"value": null, "headers": [{"key": "\\udcff", "value": null}]}\n'
    )
    assert verbs.feed(lines, "produce", "json-lines", "--json", "-p", "1").status == 0
    printed = verbs.do("consume", "json-lines", "-o", "start", "-e", "--json").out
    rows = [json.loads(line) for line in printed.splitlines()]
    assert [(row["key"], row["value"], row["headers"]) for row in rows] == [
        ("k", "v", [{"key": "a", "value": "1"}]),
        (None, {"base64": "/wA="}, []),
        (None, None, [{"key": "\udcff", "value": None}]),
    ]
    assert verbs.feed(printed.encode(), "produce", "json-copies", "--json").status == 0
    copies = verbs.do("consume", "json-copies", "-o", "start", "-e", "--json").lines
    kept = ("key", "value", "headers")
    assert sorted([str(json.loads(line)[name]) for line in copies for name in kept]) == sorted(
        [str(row[name]) for row in rows for name in kept]
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"x", "line 2 is not a record"),
        (b"[]", "it is not an object"),
        (b'{"key": 1}', "key is not text, null, or bytes"),
        (b'{"value": {"base64": "?"}}', "the base64 of value is not valid"),
        (b'{"value": "\\ud800"}', "value has a lone surrogate"),
        (b'{"headers": {}}', "headers are a list"),
        (b'{"headers": [{"value": "a"}]}', "a header is an object"),
        (b"[" * 100_000, "nested too deeply"),
    ],
)
def test_lines_of_other_json_are_refused(verbs, line, text):
    verbs.do("topic", "create", "json-faults", "--if-not-exists")
    result = verbs.feed(b'{"value": "first"}\n' + line + b"\n", "produce", "json-faults", "--json")
    assert result.status == 1
    assert text in result.err
    assert "1 record before it is stored" in result.err


@pytest.mark.parametrize("flags", [("-k", "a"), ("--key-separator", ":"), ("-H", "a=b")])
def test_lines_of_json_take_no_flags_for_keys_and_headers(verbs, flags):
    assert verbs.feed(b"", "produce", "any", "--json", *flags).status == 2


@pytest.mark.parametrize(
    ("key", "value"),  # from Kafka's UtilsTest
    [
        (b"21", -973932308),
        (b"foobar", -790332482),
        (b"a-little-bit-long-string", -985981536),
        (b"a-little-bit-longer-string", -1486304829),
        (b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8", -58897971),
        (b"abc", 479470107),
    ],
)
def test_keys_are_hashed_as_by_java(key, value):
    assert murmur2(key) == value & 0xFFFFFFFF


def test_keyless_records_stick_to_a_partition_until_switched():
    partitioner = Partitioner(4, random.Random(1))
    for _ in range(20):
        before = partitioner.partition_of(None)
        assert partitioner.partition_of(None) == before
        partitioner.turn()
        assert partitioner.partition_of(None) != before
        assert 0 <= partitioner.partition_of(b"key") < 4
    alone = Partitioner(1, random.Random(1))
    alone.turn()
    assert alone.partition_of(None) == 0
