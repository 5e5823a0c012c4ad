"""Sign-ups are greeted; invalid ones do not block others; an outage only delays greetings."""

import json

SIGNUPS = [{"name": "Anna", "address": "anna@example.org"}, {"name": "Bert", "address": "nowhere"}]
ANNA = b"anna@example.org: Welcome, Anna!"


def test_signups_are_greeted_and_undeliverable_ones_set_aside(wirebroker, start_service):
    wirebroker.create_topics({"signups": 1, "mails": 1, "signups.failed": 1})
    start_service("mailer.py", wirebroker.bootstrap_servers)
    lines = "\n".join(["no JSON", *map(json.dumps, SIGNUPS[::-1])])
    signup = start_service("signup.py", wirebroker.bootstrap_servers, SIGNUPS=lines)
    assert signup.process.wait(30) == 0

    wirebroker.assert_produced("mails", ANNA, timeout=30)
    invalid, undeliverable = wirebroker.wait_for("signups.failed", 2, timeout=30)
    assert invalid.value == b"no JSON"
    assert json.loads(undeliverable.value) == SIGNUPS[1]
    assert "should match pattern" in dict(undeliverable.headers)["reason"].decode()


def test_unavailable_reads_only_delay_greetings(wirebroker, start_service):
    wirebroker.create_topics({"signups": 1, "mails": 1, "signups.failed": 1})
    outage = wirebroker.faults.error("FETCH", "NOT_LEADER_OR_FOLLOWER", topic="signups").times(3)
    start_service("mailer.py", wirebroker.bootstrap_servers)
    line = json.dumps(SIGNUPS[0])
    start_service("signup.py", wirebroker.bootstrap_servers, SIGNUPS=line)
    wirebroker.assert_produced("mails", ANNA, timeout=60)
    assert outage.acted == 3
