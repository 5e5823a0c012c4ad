"""Keeps the highest reading of each sensor: reads `readings`, writes to `highest`.

The state is in STATE_DIR. If it is lost, it is restored from a changelog topic.
"""

import os

from quixstreams import Application
from quixstreams.state import State


def keep(value: dict, state: State) -> dict:
    """Return the highest reading so far, and of how many."""
    highest = max(value["degrees"], state.get("highest", value["degrees"]))
    count = state.get("count", 0) + 1
    state.set("highest", highest)
    state.set("count", count)
    return {"highest": highest, "count": count}


def main() -> None:
    """Run until killed."""
    app = Application(
        broker_address=os.environ["KAFKA_SERVERS"],
        consumer_group="highest",
        auto_offset_reset="earliest",
        state_dir=os.environ["STATE_DIR"],
        processing_guarantee="exactly-once",
        commit_interval=0.2,
        consumer_extra_config={"session.timeout.ms": 6000},
    )
    readings = app.topic("readings", value_deserializer="json")
    highest = app.topic("highest", value_serializer="json")
    app.dataframe(readings).apply(keep, stateful=True).to_topic(highest)
    app.run()


if __name__ == "__main__":
    main()
