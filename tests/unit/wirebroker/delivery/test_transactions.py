"""Refused records in transactions, with a fake producer."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaError, KafkaException

from tests.unit.wirebroker.delivery.fake_producer import (
    carry_out,
    pending_plan,
    plan_of,
    started,
)
from wirebroker.delivery.service.errors import FencedError


def test_a_record_refused_while_others_are_enqueued_is_reported(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.batch_records = 1
    fake.refused[b"bad"] = KafkaError.TOPIC_AUTHORIZATION_FAILED
    refusals = carry_out(transactions, plan_of(b"bad", b"good", b"last"))
    assert refusals == {"bad": "the service has no right to write to topic orders"}
    assert carry_out(transactions, plan_of(b"good")) is None
    assert fake.committed == [b"good"]


def test_a_topic_name_that_librdkafka_rejects_is_a_refusal(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.refused[b"bad"] = KafkaError._INVALID_ARG
    refusals = carry_out(transactions, plan_of(b"good", b"bad"))
    assert refusals is not None
    assert list(refusals) == ["bad"]


def test_one_transaction_finds_all_records_for_a_missing_topic(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.refused[b"1"] = KafkaError._UNKNOWN_TOPIC
    plan = plan_of(b"0", topic="invoices")
    plan.outputs += plan_of(b"1", b"2", b"3").outputs
    assert list(carry_out(transactions, plan) or ()) == ["1", "2", "3"]


def test_a_failure_of_the_pending_topic_is_not_a_refusal_of_records(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.refused[b"entry"] = KafkaError.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(FencedError, match="__wirebroker_delivery cannot be written"):
        carry_out(transactions, pending_plan(b"entry"))


def test_an_entry_that_is_too_large_is_refused(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.refused[b"entry"] = KafkaError.MSG_SIZE_TOO_LARGE
    assert list(carry_out(transactions, pending_plan(b"entry")) or ()) == ["entry"]


def test_records_in_a_batch_that_is_too_large_are_sent_alone_before_one_is_refused(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.refused[b"large"] = KafkaError.MSG_SIZE_TOO_LARGE
    plan = plan_of(b"small", b"large", b"tiny")
    assert carry_out(transactions, plan) == {}
    refusals = carry_out(transactions, plan)
    assert refusals is not None
    assert list(refusals) == ["large"]
    assert carry_out(transactions, plan_of(b"small", b"tiny")) is None
    assert fake.committed == [b"small", b"tiny"]


def test_a_transaction_without_reports_is_aborted_and_a_careful_one_finds_the_record(monkeypatch):
    transactions, fake = started(monkeypatch)
    fake.refused[b"bad"] = KafkaError.TOPIC_AUTHORIZATION_FAILED
    plan = plan_of(b"good", b"bad")
    assert carry_out(transactions, plan, is_careful=False) == {}
    assert fake.committed == []
    fake.batch_records = 1
    assert list(carry_out(transactions, plan) or ()) == ["bad"]
    assert carry_out(transactions, plan_of(b"good"), is_careful=False) is None
    assert fake.committed == [b"good"]


def test_a_producer_that_was_fenced_can_be_closed(monkeypatch):
    transactions, fake = started(monkeypatch)

    def flush(_timeout: float) -> int:
        raise KafkaException(KafkaError(KafkaError._FENCED, "fenced", True))

    monkeypatch.setattr(fake, "flush", flush)
    transactions.close()
