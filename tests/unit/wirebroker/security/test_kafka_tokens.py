"""Validation of 300 signed tokens, compared with Apache Kafka 4.3.1.

`kafka_tokens.json` has the public key sets, the tokens, and for each token the principal that
Kafka's BrokerJwtValidator returned (null: refused). Kafka 4.4.0 reads tokens in the same way, but
does not start without an expected audience and issuer.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from wirebroker.base.clock import SystemClock
from wirebroker.config import ConfigError
from wirebroker.config.security.oauth import OAuthSettings
from wirebroker.security.tokens.tokens import BadTokenError, TokenChecks

RECORDED = json.loads((Path(__file__).parent / "kafka_tokens.json").read_text())
# Refused only here (docs/compatibility.md): values that other readers could interpret differently,
# or that no token issuer writes.
STRICTER = {
    "kid is null",
    "hs256 with an oct key",
    'sub "\\ud800"',
    "payload latin-1",
    "payload invalid utf-8 elsewhere",
    "payload overlong utf-8",
    "payload surrogate utf-8",
    "payload trailing comma",
    "payload raw tab in text",
    "payload raw newline in text",
    "payload leading zero",
    "payload hex escape",
    "payload deeper",
    "header crit=[]",
    'header crit=["b64"]',
    "form leading blank",
    "form trailing blank",
    "form signature with a star",
    "form bits behind the end",
    # Kafka accepts the token and closes the connection at the next request.
    "exp 100000000000.0",
    "exp 100000000000",
    "exp 9000000000000000.0",
    "exp 1000000000000000000",
}


class RecordingTime(SystemClock):
    """The time at which Kafka validated the tokens."""

    def now_ms(self) -> int:
        return int(RECORDED["now_ms"])


def judged(row: dict[str, Any], folder: Path) -> str | None:
    """Return the principal that a token names, or None if the token is refused."""
    keys = folder / "keys.json"
    keys.write_text(json.dumps({"keys": RECORDED["sets"][row["keys"]]}))
    audience = row["audience"]
    settings = OAuthSettings(
        keys_file=keys,
        issuer=row["issuer"],
        audiences=tuple(audience.split(",")) if audience else (),
        skew_ms=30_000,
    )
    checks = TokenChecks(settings, RecordingTime())
    try:
        checks.load()
        return checks.owner(row["token"]).name
    except (BadTokenError, ConfigError):
        return None


@pytest.mark.parametrize("row", RECORDED["rows"], ids=lambda row: row["case"])
def test_tokens_are_accepted_and_refused_like_kafka(row: dict[str, Any], tmp_path: Path) -> None:
    verdict = judged(row, tmp_path)
    if row["case"] in STRICTER:
        assert row["kafka"] is not None
        assert verdict is None
    else:
        assert verdict == row["kafka"]


def test_all_stricter_cases_were_recorded() -> None:
    assert {row["case"] for row in RECORDED["rows"]} >= STRICTER
