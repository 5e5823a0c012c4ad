"""SASL messages of unauthenticated clients and JAAS lines: any bytes are parsed or refused."""

from __future__ import annotations

import contextlib

from hypothesis import example, given
from hypothesis import strategies as st

from wirebroker.codecs.errors import MalformedFrameError
from wirebroker.codecs.scram import keys_of, parse_client_final, parse_client_first
from wirebroker.config.java.jaas import LOGIN_MODULES, login_options, quoted
from wirebroker.security.sasl.mechanisms import NotProvedError, PlainMechanism, ScramMechanism
from wirebroker.security.sasl.token_logins import TokenLogin

KEYS = keys_of(1, b"salted", salt=b"salt", iterations=4096)
SCRAM_TEXT = st.text("nrcpv=,a2C3D1+/ \0é", max_size=60).map(str.encode)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)


@given(st.one_of(st.binary(max_size=200), SCRAM_TEXT))
@example(b"n,,n=,r=x")
@example(b"n,,n=" + b"a" * 9000 + b",r=x")
@example(b"c=biws,r=x,p=!")
def test_scram_message_is_parsed_or_refused(message: bytes) -> None:
    for parse in (parse_client_first, parse_client_final):
        with contextlib.suppress(MalformedFrameError):
            assert parse(message).nonce


@given(NAMES)
def test_any_user_name_can_be_escaped(name: str) -> None:
    escaped = name.replace("=", "=3D").replace(",", "=2C")
    message = parse_client_first(f"n,,n={escaped},r=abc,tokenauth=true".encode())
    assert (message.user, message.nonce, message.is_by_token) == (name, "abc", True)


@given(st.lists(st.one_of(st.binary(max_size=100), SCRAM_TEXT), max_size=3))
def test_random_bytes_never_log_in(messages: list[bytes]) -> None:
    mechanisms = (
        PlainMechanism({"alice": "a long password that no draw finds"}, b"key"),
        ScramMechanism(
            1,
            lambda _user: KEYS,
            token_of=lambda _token: TokenLogin("alice", KEYS, 1),
            forms=dict,
            nonce="nonce",
            salt_key=b"key",
        ),
    )
    for mechanism in mechanisms:
        with contextlib.suppress(NotProvedError):
            for message in messages:
                mechanism.step(message)
        assert mechanism.user is None


@given(st.text("a=;\"'\\/*\n x", max_size=60))
def test_a_jaas_line_is_read_or_refused(text: str) -> None:
    for line in (text, f"{LOGIN_MODULES['PLAIN']} required {text};"):
        with contextlib.suppress(ValueError):
            assert isinstance(login_options(line, "PLAIN"), dict)


@given(st.dictionaries(st.from_regex(r"[a-z_]{1,9}", fullmatch=True), st.text(max_size=20)))
def test_quoted_jaas_options_are_parsed_back(options: dict[str, str]) -> None:
    text = " ".join(f"{name}={quoted(value)}" for name, value in options.items())
    assert login_options(f"{LOGIN_MODULES['PLAIN']} required {text};", "PLAIN") == options
