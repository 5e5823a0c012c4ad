"""JAAS lines are read as Kafka's JaasConfig reads them, by Java's StreamTokenizer."""

from __future__ import annotations

import pytest

from wirebroker.config.jaas import LOGIN_MODULES, login_options, quoted

_PLAIN = LOGIN_MODULES["PLAIN"]

# What Apache Kafka 4.4 returned for each, as the options of a PlainLoginModule.
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
def test_options_are_read_as_java_reads_them(options: str, read: dict[str, str]) -> None:
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
def test_options_that_java_refuses_are_refused(options: str) -> None:
    with pytest.raises(ValueError, match=r"it ends|write|is missing"):
        login_options(f"{_PLAIN} required {options}", "PLAIN")


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (f'{_PLAIN} required user_a="hunter2"', "semicolon"),
        (f"{_PLAIN} required; {_PLAIN} required;", "more than one"),
        ("org.example.Login required password=hunter2;", "no login module org.example.Login"),
        (f"{_PLAIN} perhaps;", "write one of required"),
        (f"{_PLAIN};", "write one of required"),
        (f"{_PLAIN} required user_a hunter2;", "write options as"),
        (f"{_PLAIN} required user_a=hunter@2;", "in double quotes"),
        (f'{_PLAIN} required user_a="hunter2;', "quote"),
        ("", "no login module"),
        (";", "write <login module>"),
    ],
)
def test_refusals_say_what_to_write_and_show_no_value(line: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refused:
        login_options(line, "PLAIN")
    assert "hunter" not in str(refused.value)


def test_quoted_text_is_read_back() -> None:
    text = "".join(map(chr, range(256)))
    assert login_options(f"{_PLAIN} required a={quoted(text)};", "PLAIN") == {"a": text}
