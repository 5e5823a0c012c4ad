"""A member of a share group on confluent-kafka; see ../README.md."""

from __future__ import annotations

import argparse
import json
import os
import queue
import sys
import threading
from typing import Any, Final

from confluent_kafka import AcknowledgeType, KafkaException, ShareConsumer

_VERDICTS: Final = {
    "accept": AcknowledgeType.ACCEPT,
    "release": AcknowledgeType.RELEASE,
    "reject": AcknowledgeType.REJECT,
}
_EVENTS: Final = {"accept": "accepted", "release": "released", "reject": "rejected"}
_POLL_S: Final = 0.1
_COMMIT_S: Final = 10.0


class Member:
    """Accepts each record immediately; after `hold`, waits for a command with the next batch."""

    def __init__(self, name: str, bootstrap: str, topics: str, group: str) -> None:
        self.name = name
        self.commands: queue.Queue[str] = queue.Queue()
        self.is_holding = False
        self.consumer = ShareConsumer(
            {
                "bootstrap.servers": bootstrap,
                "group.id": group,
                "share.acknowledgement.mode": "explicit",
                "socket.timeout.ms": 10_000,
                "topic.metadata.refresh.interval.ms": 1000,
            }
        )
        self.consumer.subscribe(topics.split(","))
        threading.Thread(target=self.listen, daemon=True).start()

    def listen(self) -> None:
        for line in sys.stdin:
            self.commands.put(line.strip())
        self.commands.put("leave")

    def run(self) -> None:
        while True:
            try:
                command = self.commands.get_nowait()
            except queue.Empty:
                if not self.process():
                    break
            else:
                if command == "leave":
                    break
                self.is_holding = command == "hold"
        self.consumer.close()
        self.say(event="left")

    def process(self) -> bool:
        """Take and acknowledge one batch; return False on the command `leave`."""
        try:
            polled = list(self.consumer.poll(_POLL_S))
        except KafkaException as error:
            self.say(event="error", error=str(error))
            return True
        messages = []
        for message in polled:
            if message.error():
                self.say(event="error", error=str(message.error()))
            else:
                messages.append(message)
                self.say_record("acquired", message, delivery=message.delivery_count())
        if not messages:
            return True
        command = "accept"
        if self.is_holding:
            self.say(event="holding")
            command = self.commands.get()
            self.is_holding = False
        if command == "leave":
            return False
        self.acknowledge(messages, command)
        return True

    def acknowledge(self, messages: list[Any], command: str) -> None:
        for message in messages:
            self.consumer.acknowledge(message, _VERDICTS[command])
        try:
            results = self.consumer.commit_sync(_COMMIT_S)
        except KafkaException as error:
            self.say(event="refused", error=str(error))
            return
        refused = {
            (result.topic, result.partition): str(problem)
            for result, problem in results.items()
            if problem is not None
        }
        for (topic, partition), text in refused.items():
            self.say(event="refused", partition=f"{topic}-{partition}", error=text)
        for message in messages:
            if (message.topic(), message.partition()) not in refused:
                self.say_record(_EVENTS[command], message)

    def say_record(self, event: str, message: Any, **more: Any) -> None:
        partition = f"{message.topic()}-{message.partition()}"
        self.say(event=event, partition=partition, offset=message.offset(), **more)

    def say(self, **event: Any) -> None:
        """Write an event in one call, because members share the pipe."""
        line = json.dumps({"member": self.name, **event}) + "\n"
        os.write(sys.stdout.fileno(), line.encode())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for argument in ("name", "bootstrap", "topics", "group"):
        parser.add_argument(argument)
    Member(**vars(parser.parse_args())).run()


if __name__ == "__main__":
    main()
