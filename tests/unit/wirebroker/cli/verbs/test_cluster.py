"""`wirebroker cluster …` and `wirebroker features …` against a broker."""

from __future__ import annotations


def test_a_cluster_is_shown_with_and_without_info(verbs):
    cluster = verbs.json("cluster")
    assert [broker["broker"] for broker in cluster["brokers"]] == [1]
    assert verbs.json("cluster", "info") == cluster
    assert verbs.do("cluster", "info").lines == verbs.do("cluster").lines


def test_log_dirs_reports_disk_usage(verbs):
    verbs.do("topic", "create", "on-disk", "-p", "3")
    (directory,) = verbs.json("cluster", "log-dirs")
    assert (directory["broker_id"], directory["error"]) == (1, None)
    assert directory["replica_count"] >= 3
    assert directory["size_bytes"] >= 0
    assert 0 < directory["usable_bytes"] <= directory["total_bytes"]
    (again,) = verbs.json("cluster", "log-dirs", "--broker", "1")
    # Other processes use the disk meanwhile.
    assert again | {"usable_bytes": 0} == directory | {"usable_bytes": 0}
    result = verbs.run("cluster", "log-dirs", "--broker", "7")
    assert (result.status, "there is no broker 7" in result.err) == (1, True)


def test_broker_is_unregistered_only_with_yes(verbs):
    result = verbs.do("cluster", "unregister", "1")
    assert "nothing is changed: this unregisters broker 1" in result.err
    for flags in ((), ("--yes",)):
        result = verbs.run("cluster", "unregister", "9", *flags)
        assert (result.status, "BROKER_ID_NOT_REGISTERED" in result.err) == (1, True)


def test_controller_is_unregistered_only_with_yes(verbs):
    result = verbs.do("cluster", "unregister-controller", "9")
    assert "nothing is changed: this unregisters controller 9" in result.err
    result = verbs.run("cluster", "unregister-controller", "9", "--yes")
    assert (result.status, "CONTROLLER_ID_NOT_REGISTERED" in result.err) == (1, True)
    result = verbs.run("cluster", "unregister-controller", "1", "--yes")
    assert (result.status, "while it is active" in result.err) == (1, True)


def levels(verbs):
    return {feature["name"]: feature["level"] for feature in verbs.json("features", "list")}


def test_features_are_listed_and_changed(verbs):
    name = "eligible.leader.replicas.version"
    assert levels(verbs)[name] == 1
    assert levels(verbs)["metadata.version"] > 20
    result = verbs.do("features", "downgrade", f"{name}=0", "--dry-run")
    assert result.lines == [f"{name} could have level 0"]
    assert levels(verbs)[name] == 1
    assert verbs.do("features", "downgrade", f"{name}=0").lines == [f"{name} has level 0"]
    assert levels(verbs)[name] == 0
    verbs.do("features", "upgrade", f"{name}=1")
    assert levels(verbs)[name] == 1


def test_invalid_feature_level_is_refused(verbs):
    result = verbs.run("features", "upgrade", "eligible.leader.replicas.version=7")
    assert (result.status, "the features cannot be changed" in result.err) == (1, True)
    for wrong in ("a", "a=", "=1", "a=x", "a=-1"):
        assert verbs.run("features", "upgrade", wrong).status == 2
    assert verbs.run("features", "upgrade", "a=1", "a=2").status == 2
