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
        transaction["transactional_id"]: transaction["state"]
        for transaction in verbs.json("transaction", "list", *flags)
    }


def test_an_open_transaction_is_listed_and_described(verbs):
    producer = begun(verbs, "paying")
    assert states(verbs)["paying"] == "Ongoing"
    transaction = verbs.json("transaction", "describe", "paying")
    assert transaction["partitions"] == ["paying-1"]
    assert (transaction["state"], transaction["coordinator_id"]) == ("Ongoing", 1)
    assert transaction["open_ms"] >= 0
    result = verbs.do("transaction", "describe", "paying")
    assert result.lines[0].startswith("paying Ongoing, producer ")
    assert result.lines[-1] == "  paying-1"
    producer.commit_transaction(30)
    assert "paying" not in states(verbs, "--state", "Ongoing")
    assert states(verbs)["paying"] in {"PrepareCommit", "CompleteCommit"}


def test_hanging_transaction_is_aborted_only_with_yes(verbs):
    producer = begun(verbs, "hanging")
    result = verbs.do("transaction", "abort", "hanging")
    assert "nothing is changed: this aborts the transaction of hanging" in result.err
    assert states(verbs)["hanging"] == "Ongoing"
    assert verbs.do("transaction", "abort", "hanging", "--yes").lines == ["hanging is aborted"]
    assert states(verbs)["hanging"] == "Empty"
    with pytest.raises(KafkaException, match="fenced"):
        producer.commit_transaction(30)
    result = verbs.run("transaction", "abort", "nobody's", "--yes")
    assert (result.status, "there is no such transactional id" in result.err) == (1, True)


def test_missing_transaction_or_state_is_reported(verbs):
    result = verbs.run("transaction", "describe", "nobody's")
    assert (result.status, "there is no such transactional id" in result.err) == (1, True)
    result = verbs.run("transaction", "list", "--state", "Sleeping")
    assert (result.status, "there is no state Sleeping" in result.err) == (1, True)
