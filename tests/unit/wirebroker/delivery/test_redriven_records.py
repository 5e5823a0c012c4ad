"""Dead letters of scheduled records that a redrive sends to the input topic again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.wirebroker.delivery.delivery_kit import NOW, MachineRun, received
from wirebroker.base.dead_letter_headers import read_dead_letter_headers
from wirebroker.delivery.letters.letter import redriven_headers

MINUTE_MS = 60_000
DAY_MS = 86_400_000
# The first becomes a dead letter when it is due, the second when it is read.
TARGETS = pytest.mark.parametrize("target", ["orders-new", "secrets"])


def redriven(run: MachineRun, now_ms: int, **headers: object) -> dict[str, Any]:
    """Return the headers with which the dead letter of a record is sent again."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    run.receive(received(0, headers=named))
    (letter,) = run.run(now_ms)
    assert letter.topic == "deliver.dead-letters"
    return dict(redriven_headers(letter.headers, letter.value))


@TARGETS
def test_a_redriven_record_keeps_its_original_timestamp(target: str) -> None:
    run = MachineRun()
    headers = redriven(run, NOW, deliver_to=target, deliver_id="7")
    headers["deliver-to"] = b"orders"
    run.receive(received(1, headers=headers, timestamp_ms=NOW + DAY_MS))
    (record,) = run.run(NOW + DAY_MS)
    assert record.topic == "orders"
    assert dict(record.headers) == {"deliver-original-timestamp": b"%d" % NOW}


@TARGETS
def test_a_redriven_record_does_not_replace_a_later_one_with_its_id(target: str) -> None:
    run = MachineRun()
    headers = redriven(run, NOW, deliver_to=target, deliver_id="7")
    later = {"deliver-to": "orders", "deliver-id": "7", "deliver-after": "1h"}
    run.receive(received(1, headers=later, value=b"later"))
    run.receive(received(2, headers=headers | {"deliver-to": b"orders"}, value=b"redriven"))
    assert [record.value for record in run.run(NOW)] == [b"redriven"]
    assert [record.value for record in run.run(NOW + DAY_MS)] == [b"later"]


def test_a_redriven_cancellation_keeps_its_id_and_is_refused_again() -> None:
    """Without the id, its null value would be delivered to the target."""
    run = MachineRun()
    headers = {"deliver-to": "orders", "deliver-id": "7" * 10_000}
    run.receive(received(0, headers=headers, value=None))
    (letter,) = run.run(NOW)
    redriven_letter = dict(redriven_headers(letter.headers, letter.value))
    run.receive(received(1, headers=redriven_letter, value=None))
    (again,) = run.run(NOW + DAY_MS)
    assert again.topic == "deliver.dead-letters"
    assert dict(again.headers)["deliver-id"] == b"7" * 10_000


@TARGETS
def test_expires_at_still_holds_and_expires_after_counts_again(target: str) -> None:
    run = MachineRun()
    at, after = (
        redriven(run, NOW, deliver_to=target, **{name: value})
        for name, value in (("expires_at", NOW + MINUTE_MS), ("expires_after", "1m"))
    )
    late_ms = NOW + DAY_MS
    run.receive(received(1, headers=after | {"deliver-to": b"orders"}, timestamp_ms=late_ms))
    (record,) = run.run(late_ms)
    assert record.topic == "orders"
    run.receive(received(2, headers=at | {"deliver-to": b"orders"}, timestamp_ms=late_ms))
    (letter,) = run.run(late_ms)
    assert read_dead_letter_headers(letter.headers)["message"].startswith("expired")
