"""Which dead letters a redrive sends, with a fake consumer and producer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from confluent_kafka import KafkaException

from wirebroker.base.clock import SystemClock
from wirebroker.delivery.letters.letter import LetterFilter, redriven_headers
from wirebroker.delivery.letters.redrive import Redrive, RedriveRequest
from wirebroker.delivery.service.errors import ServiceError
from wirebroker.delivery.service.write_rights import WriteRights

TOPIC = "orders.dead-letters"
EXISTING = ("orders", "billing", TOPIC, "__internal")


class Message:
    def __init__(self, offset: int, target: str | None) -> None:
        self._offset = offset
        self._target = target

    def error(self) -> None:
        return None

    def partition(self) -> int:
        return 0

    def offset(self) -> int:
        return self._offset

    def timestamp(self) -> tuple[int, int]:
        return 1, 0

    def key(self) -> None:
        return None

    def value(self) -> bytes:
        return b"%d" % self._offset

    def headers(self) -> list[tuple[str, bytes]]:
        if self._target is None:
            raise SystemError("returned a result with an exception set")
        return [("__dlq.errors.topic", self._target.encode())]


class Cluster:
    """One partition with `end` records at the start of the redrive, and more of them later."""

    def __init__(self, *targets: str | None) -> None:
        self.end = len(targets)
        self.targets = [*targets, *["orders"] * 10_000]
        self.position = 0
        self.sent: list[str] = []

    # -- consumer

    def list_topics(self, topic: str | None = None, timeout: float = 0) -> Any:
        del timeout
        names = [*EXISTING] if topic is None else [topic]
        return SimpleNamespace(topics=dict.fromkeys(names, SimpleNamespace(partitions={0: None})))

    def committed(self, places: list[Any], timeout: float) -> list[Any]:
        return [SimpleNamespace(partition=0, offset=-1, metadata="", error=None) for _ in places]

    def get_watermark_offsets(self, _place: Any, timeout: float) -> tuple[int, int]:
        return 0, self.end

    def assign(self, _places: list[Any]) -> None:
        pass

    def consume(self, _most: int, _wait_s: float) -> list[Message]:
        self.position += 3
        assert self.position < 1_000, "the redrive does not end"
        first = self.position - 3
        return [Message(offset, self.targets[offset]) for offset in range(first, first + 3)]

    def consumer_group_metadata(self) -> None:
        return None

    def close(self) -> None:
        pass

    # -- producer

    def init_transactions(self, _timeout: float) -> None:
        pass

    def begin_transaction(self) -> None:
        pass

    def produce(self, target: str, value: bytes, _key: Any, **_: Any) -> None:
        self.sent.append(f"{target} {value.decode()}")

    def flush(self) -> int:
        return 0

    def send_offsets_to_transaction(self, *_: Any) -> None:
        pass

    def commit_transaction(self, _timeout: float) -> None:
        pass


def redriven(cluster: Cluster, monkeypatch: pytest.MonkeyPatch, target: str | None = None) -> Any:
    for name in ("Consumer", "Producer"):
        monkeypatch.setattr(f"wirebroker.delivery.letters.redrive.{name}", lambda _config: cluster)
    request = RedriveRequest(TOPIC, target, LetterFilter(), None, None)
    return Redrive(request, {}, SystemClock(), lambda _seconds: None).run()


def test_a_redrive_ends_at_the_end_that_the_topic_had_at_its_start(monkeypatch):
    cluster = Cluster("orders", "orders", "orders", "orders")
    assert redriven(cluster, monkeypatch).sent == {"orders": 4}
    assert cluster.sent[-1] == "orders 3"


@pytest.mark.parametrize("topic", ["__consumer_offsets", "a\0b", ""])
def test_a_dead_letter_that_names_an_internal_or_invalid_topic_is_not_sent(topic, monkeypatch):
    result = redriven(Cluster("orders", topic), monkeypatch)
    assert (result.sent, result.without_target) == ({"orders": 1}, 1)
    assert redriven(Cluster("orders", topic), monkeypatch, "billing").sent == {"billing": 2}


def test_a_redrive_stops_while_it_reads_letters_that_it_does_not_send(monkeypatch):
    cluster = Cluster(*["orders"] * 100)
    for name in ("Consumer", "Producer"):
        monkeypatch.setattr(f"wirebroker.delivery.letters.redrive.{name}", lambda _config: cluster)
    waits: list[float] = []

    def wait(seconds: float) -> None:
        waits.append(seconds)
        if len(waits) == 3:
            raise ServiceError("the redrive was stopped")

    request = RedriveRequest(TOPIC, None, LetterFilter(message="other"), None, None)
    with pytest.raises(ServiceError, match="was stopped"):
        Redrive(request, {}, SystemClock(), wait).run()
    assert (cluster.position, cluster.sent) == (6, [])


def test_a_redrive_that_fails_keeps_its_counts(monkeypatch):
    cluster = Cluster("orders", "orders")

    def refuse(_timeout: float) -> None:
        if len(cluster.sent) == 2:
            raise KafkaException("fenced")

    monkeypatch.setattr(cluster, "commit_transaction", refuse)
    for name in ("Consumer", "Producer"):
        monkeypatch.setattr(f"wirebroker.delivery.letters.redrive.{name}", lambda _config: cluster)
    request = RedriveRequest(TOPIC, None, LetterFilter(), None, 1)
    redrive = Redrive(request, {}, SystemClock(), lambda _seconds: None)
    with pytest.raises(ServiceError, match="fenced"):
        redrive.run()
    assert redrive.result.sentences() == ["orders: 1 record sent"]


def test_a_target_without_the_right_to_write_is_named(monkeypatch):
    cluster = Cluster("orders", "secret")
    monkeypatch.setattr(WriteRights, "denied", lambda _, topics: sorted(topics & {"secret"}))
    with pytest.raises(ServiceError, match="the login has no right to write to secret"):
        redriven(cluster, monkeypatch)
    assert cluster.sent == []


def test_a_dead_letter_with_unreadable_headers_is_counted(monkeypatch):
    result = redriven(Cluster("orders", None, "orders"), monkeypatch)
    assert (result.sent, result.unreadable) == ({"orders": 2}, 1)


@pytest.mark.parametrize(
    ("target", "reason"),
    [
        ("__internal", "it is an internal topic"),
        ("missing", "there is no such topic"),
        (TOPIC, "it is the topic of the dead letters"),
    ],
)
def test_a_target_that_cannot_be_used_is_refused_before_anything_is_sent(
    target, reason, monkeypatch
):
    cluster = Cluster("orders")
    with pytest.raises(ServiceError, match=f"cannot redrive to {target}: {reason}"):
        redriven(cluster, monkeypatch, target)
    assert (cluster.position, cluster.sent) == (0, [])


def test_a_batch_with_a_letter_of_a_deleted_topic_is_not_sent(monkeypatch):
    cluster = Cluster("orders", "deleted")
    with pytest.raises(ServiceError, match="cannot redrive to deleted: there is no such topic"):
        redriven(cluster, monkeypatch)
    assert cluster.sent == []


def test_a_redriven_record_has_no_id_that_would_replace_a_later_one():
    headers = (
        *(("deliver-to", b"orders"), ("deliver-id", b"7"), ("expires-at", b"1")),
        *(("deliver-original-timestamp", b"5"), ("retry-attempt", b"2"), ("a", None)),
        ("__dlq.errors.topic", b"deliver"),
    )
    kept = (("deliver-to", b"orders"), ("expires-at", b"1"), ("deliver-original-timestamp", b"5"))
    assert redriven_headers(headers, b"v") == (*kept, ("a", None))
    assert redriven_headers((("deliver-id", b"7"),), b"v") == (("deliver-id", b"7"),)
