"""State survives: the service is killed, its disk is lost, and the broker is killed as well."""

import json

from wirebroker.testing import Broker


def last(broker: Broker) -> dict[bytes, dict]:
    records = broker.records("highest", read_committed=True)
    return {record.key: json.loads(record.value) for record in records}


def test_highest_readings_survive_kills_of_broker_and_program(start_service, tmp_path):
    with Broker.spawn() as broker:
        broker.create_topics({"readings": 1, "highest": 1})
        servers = broker.bootstrap_servers
        start_service("readings.py", servers, READINGS="5")
        first = start_service("highest.py", servers, STATE_DIR=str(tmp_path / "first"))
        broker.wait_for("highest", 10, timeout=60, read_committed=True)

        first.kill()
        broker.kill()
        broker.start()
        start_service("readings.py", servers, READINGS="2")
        start_service("highest.py", servers, STATE_DIR=str(tmp_path / "another"))
        broker.wait_for("highest", 14, timeout=90, read_committed=True)

        assert last(broker) == {
            b"attic": {"highest": 34, "count": 7},
            b"cellar": {"highest": 10, "count": 7},
        }
