"""`wirebroker cluster …` and `wirebroker features …` against a broker."""

from __future__ import annotations


def test_a_cluster_is_shown_with_and_without_info(verbs):
    found = verbs.json("cluster")
    assert [each["broker"] for each in found["brokers"]] == [1]
    assert verbs.json("cluster", "info") == found
    assert verbs.do("cluster", "info").lines == verbs.do("cluster").lines


def test_log_dirs_tell_what_is_on_the_disks(verbs):
    verbs.do("topic", "create", "on-disk", "-p", "3")
    (found,) = verbs.json("cluster", "log-dirs")
    assert (found["broker_id"], found["error"]) == (1, None)
    assert found["replica_count"] >= 3
    assert found["size_bytes"] >= 0
    assert 0 < found["usable_bytes"] <= found["total_bytes"]
    (again,) = verbs.json("cluster", "log-dirs", "--broker", "1")
    # Other processes use the disk meanwhile.
    assert again | {"usable_bytes": 0} == found | {"usable_bytes": 0}
    said = verbs.run("cluster", "log-dirs", "--broker", "7")
    assert (said.status, "there is no broker 7" in said.err) == (1, True)


def test_a_broker_is_unregistered_with_yes_alone(verbs):
    said = verbs.do("cluster", "unregister", "1")
    assert "nothing is changed: this unregisters broker 1" in said.err
    for flags in ((), ("--yes",)):
        said = verbs.run("cluster", "unregister", "9", *flags)
        assert (said.status, "BROKER_ID_NOT_REGISTERED" in said.err) == (1, True)


def test_a_controller_is_unregistered_with_yes_alone(verbs):
    said = verbs.do("cluster", "unregister-controller", "9")
    assert "nothing is changed: this unregisters controller 9" in said.err
    said = verbs.run("cluster", "unregister-controller", "9", "--yes")
    assert (said.status, "CONTROLLER_ID_NOT_REGISTERED" in said.err) == (1, True)
    said = verbs.run("cluster", "unregister-controller", "1", "--yes")
    assert (said.status, "while it is active" in said.err) == (1, True)


def levels(verbs):
    return {each["name"]: each["level"] for each in verbs.json("features", "list")}


def test_features_are_listed_and_changed(verbs):
    name = "eligible.leader.replicas.version"
    assert levels(verbs)[name] == 1
    assert levels(verbs)["metadata.version"] > 20
    said = verbs.do("features", "downgrade", f"{name}=0", "--dry-run")
    assert said.lines == [f"{name} could have level 0"]
    assert levels(verbs)[name] == 1
    assert verbs.do("features", "downgrade", f"{name}=0").lines == [f"{name} has level 0"]
    assert levels(verbs)[name] == 0
    verbs.do("features", "upgrade", f"{name}=1")
    assert levels(verbs)[name] == 1


def test_what_is_no_level_is_refused(verbs):
    said = verbs.run("features", "upgrade", "eligible.leader.replicas.version=7")
    assert (said.status, "the features cannot be changed" in said.err) == (1, True)
    for wrong in ("a", "a=", "=1", "a=x", "a=-1"):
        assert verbs.run("features", "upgrade", wrong).status == 2
    assert verbs.run("features", "upgrade", "a=1", "a=2").status == 2
