"""JAAS lines are parsed like Kafka's JaasConfig, which uses Java's StreamTokenizer."""

from __future__ import annotations

import re

import pytest

from wirebroker.config.java.jaas import LOGIN_MODULES, login_options, quoted
from wirebroker.config.java.java_options import LOGIN_CONFIG, java_options
from wirebroker.config.rows.row import ConfigError

_PLAIN = LOGIN_MODULES["PLAIN"]

# Apache Kafka 4.4's results as options of a PlainLoginModule.
_READ = [
    (r'user_a="\101\60\7\477\8\a\b\f\n\r\t\v\x\"";', {"user_a": "A0\x07'78\a\b\f\n\r\t\vx\""}),
    (r'a="A\\";', {"a": "A\\"}),
    (r'a="\u0041";', {"a": "u0041"}),
    ('a="b\\\nc";', {"a": "b\nc"}),
    ('a="b\nc=d;', {"a": "b", "c": "d"}),
    ("a='x\"y' b=\"x'y\";", {"a": 'x"y', "b": "x'y"}),
    (r"a='\'';", {"a": "'"}),
    ('a="";', {"a": ""}),
    ('"a"="b";', {"a": "b"}),
    ('"1"=b;', {"1": "b"}),
    ('a=b"c"=d;', {"a": "b", "c": "d"}),
    ("a=b c=d a=e;", {"a": "e", "c": "d"}),
    ("a=b.c-d_e$f1;", {"a": "b.c-d_e$f1"}),
    ("a.b=c. a1=b _c=d;", {"a.b": "c.", "a1": "b", "_c": "d"}),
    ("a=$b $c=d;", {"a": "$b", "$c": "d"}),
    (
        "a=\xa0b c=\u2028d e=\u6f22 f=\U0001f600;",
        {"a": "\xa0b", "c": "\u2028d", "e": "漢", "f": "😀"},
    ),
    ("a=b\x0bc=d\x01;", {"a": "b", "c": "d"}),
    ("a=b/c;\n;", {"a": "b"}),
    ("a=b/*c*/d=e;", {"a": "b", "d": "e"}),
    ("/ comment\n a=b; // x", {"a": "b"}),
    ("a=b; /* x", {"a": "b"}),
    ('/* "; */ a="=;//";', {"a": "=;//"}),
    (";", {}),
]


@pytest.mark.parametrize(("options", "read"), _READ)
def test_options_are_read_like_java(options: str, read: dict[str, str]) -> None:
    for start in (_PLAIN, f'"{_PLAIN}"', f"/* x */\n{_PLAIN}"):
        for flag in ("required", "REQUISITE", '"Sufficient"', "'optional'"):
            assert login_options(f"{start} {flag} {options}", "PLAIN") == read


@pytest.mark.parametrize(
    "options",
    [
        *("a=1;", "a=.5;", "a=-b;", "a=--b;", "1a=b;", "-a=b;", "a = - ;", "a=*;", "a=b*;"),
        *("a=b:c;", "a=b@c;", "a=b, c=d;", "a=${x};", "a=\x7f;", "a=\x80;", "a=\x9f;"),
        *("a==b;", "a=;", "a=;;", "=a=b;", "a b;", "a=b c;", "a=b;;", "a", "a=b", 'a="b', 'a="b\\'),
        *('a="b;', "a=b/c;", 'a="b;\n', ";;"),
    ],
)
def test_options_refused_by_java_are_refused(options: str) -> None:
    with pytest.raises(ValueError, match=r"it ends|write|is missing"):
        login_options(f"{_PLAIN} required {options}", "PLAIN")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{_PLAIN} required user_a="hunter2"', "semicolon"),
        (f"{_PLAIN} required; {_PLAIN} required;", "more than one"),
        (
            "org.example.Login required password=hunter2;",
            "login module org.example.Login is not supported",
        ),
        (f"{_PLAIN} perhaps;", "write one of required"),
        (f"{_PLAIN};", "write one of required"),
        (f"{_PLAIN} required user_a hunter2;", "= is missing"),
        (f"{_PLAIN} required user_a=hunter@2;", "in double quotes"),
        (f'{_PLAIN} required user_a="hunter2;', "quote"),
        ("", "no login module"),
        (";", "write the name of a login module"),
    ],
)
def test_refusals_tell_what_to_write_and_show_no_value(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        login_options(line, "PLAIN")
    assert "hunter" not in str(refused.value)


def test_quoted_text_round_trips() -> None:
    text = "".join(map(chr, range(256)))
    assert login_options(f"{_PLAIN} required a={quoted(text)};", "PLAIN") == {"a": text}


# The results of the JDK's ConfigFile; `who` is a system property with the value alice.
_SECTIONS = [
    ('KafkaServer { a.B required x="1" y=z; };', {"KafkaServer": [("a.B", {"x": "1", "y": "z"})]}),
    (
        "KafkaServer { a.B required; c.D optional; };\nin.KafkaServer { e.F required; };",
        {"KafkaServer": [("a.B", {}), ("c.D", {})], "in.KafkaServer": [("e.F", {})]},
    ),
    ("'KafkaServer' { a.B required; };", {"KafkaServer": [("a.B", {})]}),
    ('"in_2.KafkaServer" { a.B required; };', {"in_2.KafkaServer": [("a.B", {})]}),
    ("S { a.B required x=*b; };", {"S": [("a.B", {"x": "*b"})]}),
    ('S { a.B required x="${who}"; };', {"S": [("a.B", {"x": "alice"})]}),
    (
        'S { a.B required x="${/}a${{x}}b${who}c${"; };',
        {"S": [("a.B", {"x": "/a${{x}}balicec${"})]},
    ),
    ('S { a.B required x="${{x"; };', {"S": [("a.B", {"x": "${{x"})]}),
    ('S { a.B required x="a\\101\\nb"; };', {"S": [("a.B", {"x": "aA\nb"})]}),
    ("// c\n/* x */ / y\n S{a.B required;};", {"S": [("a.B", {})]}),
    ('S { "a.B" "required"; };', {"S": [("a.B", {})]}),
    ("S { a.B required x=a x=b; };", {"S": [("a.B", {"x": "b"})]}),
    ("", {}),
]


def sections(text: str) -> dict[str, list[tuple[str, dict[str, str]]]]:
    environment = {
        "KAFKA_HEAP_OPTS": f"-Xmx1G -D{LOGIN_CONFIG}=other -Dwho=bob",
        "KAFKA_OPTS": f" -D{LOGIN_CONFIG}==/jaas  -Dwho=alice ",
    }
    files = {"/jaas": text}
    options = java_options(environment, files.__getitem__)
    assert (options.login_file, options.without_effect) == ("/jaas", ("who",))
    if options.problem is not None:
        raise ConfigError(options.problem)
    return {
        name: [(module.name, dict(module.options)) for module in modules]
        for name, modules in options.sections.items()
    }


@pytest.mark.parametrize(("text", "read"), _SECTIONS)
def test_jaas_files_are_read_like_java(text: str, read: dict) -> None:
    assert sections(text) == read


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("S { a.B required; }", "line 1: it ends too early"),
        ("S { a.B required };", "line 1: write the name of an option"),
        ("S {\n a.B required x='y'; };", "line 2: write the value of an option"),
        ("S { a.B required x=1; };", "line 1: write the value of an option"),
        ("S { a.B required x=kafka@R; };", "line 1: write the name of an option"),
        ("S { a.B required =b; };", "line 1: write the name of an option"),
        ('S { a.B required x="${nope}"; };', "line 1: there is no system property for ${nope}"),
        ("S { a.B required; };\r\nS { a.B required; };", "it has two sections S"),
        ('S { a.B required x="hunter2\n"; };', "line 2: it ends too early"),
        ("S { a.B maybe; };", "line 1: write one of required"),
        ("; S { a.B required; };", "line 1: write the name of a section"),
        ("S = { a.B required; };", "line 1: { is missing"),
        ("S {{ a.B required; };", "line 1: write the name of a login module"),
        ("S { a.B required; };;", "line 1: write the name of a section"),
        ("S { a.B required; }; x", "line 1: it ends too early"),
    ],
)
def test_jaas_files_refused_by_java_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=re.escape(f"/jaas cannot be used: {why}")) as refused:
        sections(text)
    assert "hunter2" not in str(refused.value)
