"""`wirebroker config …` against a broker."""

from __future__ import annotations


def values(verbs, *arguments):
    return {config["name"]: config["value"] for config in verbs.json("config", "list", *arguments)}


def test_a_topics_configs_are_set_and_unset(verbs):
    verbs.do("topic", "create", "orders")
    assert values(verbs, "topic", "orders") == {}
    result = verbs.do("config", "set", "topic", "orders", "retention.ms=1000", "segment.ms=5000")
    assert result.out == "topic orders: retention.ms=1000\ntopic orders: segment.ms=5000\n"
    assert values(verbs, "topic", "orders") == {"retention.ms": "1000", "segment.ms": "5000"}
    verbs.do("config", "unset", "topic", "orders", "retention.ms")
    assert values(verbs, "topic", "orders") == {"segment.ms": "5000"}
    assert values(verbs, "topic", "orders", "--all")["retention.ms"] == "604800000"


def test_configs_of_all_brokers_and_of_one(verbs):
    verbs.do("config", "set", "broker", "all", "log.retention.ms=7200000")
    assert values(verbs, "broker", "all") == {
        "log.retention.ms": "7200000",
        "min.insync.replicas": "1",  # set in every new cluster
    }
    verbs.do("config", "set", "broker", "1", "log.retention.ms=3600000")
    row = next(
        config
        for config in verbs.json("config", "list", "broker", "1")
        if config["name"] == "log.retention.ms"
    )
    assert (row["value"], row["source"]) == ("3600000", "this broker")
    verbs.do("config", "unset", "broker", "1", "log.retention.ms")
    verbs.do("config", "unset", "broker", "all", "log.retention.ms")


def test_error_messages_suggest_the_intended_name(verbs):
    verbs.do("topic", "create", "names")
    result = verbs.run("config", "set", "topic", "names", "retention.mss=1")
    assert result.status == 1
    assert result.err.endswith("retention.mss; did you mean retention.ms?\n")
    assert "INVALID_CONFIG" in verbs.run("config", "set", "topic", "names", "retention.ms=x").err
    assert "did you mean names?" in verbs.run("config", "list", "topic", "nammes").err
    assert "running brokers: 1" in verbs.run("config", "list", "broker", "7").err
    assert verbs.run("config", "list", "broker", "x").status == 2
    assert verbs.run("config", "set", "topic", "names", "retention.ms").status == 2


def test_configs_of_groups_and_client_metrics(verbs):
    verbs.do("config", "set", "group", "billing", "consumer.session.timeout.ms=50000")
    assert values(verbs, "group", "billing") == {"consumer.session.timeout.ms": "50000"}
    verbs.do("config", "unset", "group", "billing", "consumer.session.timeout.ms")
    assert values(verbs, "group", "billing") == {}
    verbs.do("config", "set", "client-metrics", "all", "metrics=*", "interval.ms=1000")
    assert values(verbs, "client-metrics", "all") == {"metrics": "*", "interval.ms": "1000"}
    result = verbs.run("config", "set", "client-metrics", "all", "interval=1")
    assert result.status == 1
    assert "client metrics have no config interval; did you mean" in result.err
