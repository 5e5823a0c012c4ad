"""`wirebroker transaction …` against a broker, with a transaction of confluent-kafka."""

from __future__ import annotations

import pytest
from confluent_kafka import KafkaException, Producer


def begun(verbs, name):
    verbs.do("topic", "create", name, "-p", "2")
    producer = Producer({"bootstrap.servers": verbs.bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    producer.produce(name, b"value", partition=1)
    assert producer.flush(30) == 0
    return producer


def states(verbs, *flags):
    return {
        each["transactional_id"]: each["state"]
        for each in verbs.json("transaction", "list", *flags)
    }


def test_an_open_transaction_is_listed_and_described(verbs):
    producer = begun(verbs, "paying")
    assert states(verbs)["paying"] == "Ongoing"
    found = verbs.json("transaction", "describe", "paying")
    assert found["partitions"] == ["paying-1"]
    assert (found["state"], found["coordinator_id"]) == ("Ongoing", 1)
    assert found["open_ms"] >= 0
    said = verbs.do("transaction", "describe", "paying")
    assert said.lines[0].startswith("paying Ongoing, producer ")
    assert said.lines[-1] == "  paying-1"
    producer.commit_transaction(30)
    assert "paying" not in states(verbs, "--state", "Ongoing")
    assert states(verbs)["paying"] in {"PrepareCommit", "CompleteCommit"}


def test_a_transaction_that_hangs_is_aborted_with_yes_alone(verbs):
    producer = begun(verbs, "hanging")
    said = verbs.do("transaction", "abort", "hanging")
    assert "nothing is changed: this aborts the transaction of hanging" in said.err
    assert states(verbs)["hanging"] == "Ongoing"
    assert verbs.do("transaction", "abort", "hanging", "--yes").lines == ["hanging is aborted"]
    assert states(verbs)["hanging"] == "Empty"
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(30)
    said = verbs.run("transaction", "abort", "nobody's", "--yes")
    assert (said.status, "there is none of that id" in said.err) == (1, True)


def test_what_is_not_there_is_said(verbs):
    said = verbs.run("transaction", "describe", "nobody's")
    assert (said.status, "there is none of that id" in said.err) == (1, True)
    said = verbs.run("transaction", "list", "--state", "Sleeping")
    assert (said.status, "there is no state Sleeping" in said.err) == (1, True)
