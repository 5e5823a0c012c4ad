"""A group member on kcat's balanced consumer, `kcat -G`, whose output is translated to events.

kcat silently commits every five seconds (its option for that never reaches librdkafka's setting)
and when partitions are revoked; it leaves the group at SIGTERM.
"""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import threading

from compat_tests.groups.members.speaking import Settings, Speaker, leave_command, settings_of
from tests.support.tools import tools

# % Group NAME rebalanced (memberid ID): assigned: TOPIC [0], TOPIC [1]
# % Group NAME rebalanced: incremental assignment of 2 partition(s) (memberid ID, …): TOPIC [0], …
REBALANCED = re.compile(r"% Group \S+ rebalanced(?:: incremental| \(memberid .*\):) (\w+)(.*)")
RECORD = re.compile(r"(\d+) (\d+)\n")
PARTITION = re.compile(r"\[(\d+)\]")


def command(settings: Settings) -> list[str]:
    configs = {
        "session.timeout.ms": settings.session_ms,
        "heartbeat.interval.ms": settings.heartbeat_ms,
        "max.poll.interval.ms": max(10_000, settings.session_ms),
        "partition.assignment.strategy": ",".join(settings.assignors),
        "auto.offset.reset": "earliest",
        "fetch.wait.max.ms": 100,
        "log_level": 2,  # other threads' lines would mix with the main thread's
    }
    if settings.instance_id:
        configs["group.instance.id"] = settings.instance_id
    options = [f"-X{name}={value}" for name, value in configs.items()]
    kcat = [*tools.kcat_command(), "-b", settings.bootstrap, *options, "-u", "-f", "%p %o\n"]
    return [*kcat, "-G", settings.group, settings.topic]


def tell(line: str, speaker: Speaker) -> None:
    rebalanced = REBALANCED.match(line)
    record = RECORD.fullmatch(line)
    if record:
        speaker.record(int(record[1]), int(record[2]))
    elif rebalanced:
        partitions = [int(number) for number in PARTITION.findall(rebalanced[2])]
        if rebalanced[1].startswith("assign"):
            speaker.assigned(partitions)
        else:
            speaker.revoked(partitions)
    else:
        sys.stderr.write(line)


def leave_when_told(process: subprocess.Popen[str]) -> None:
    leave_command().wait()
    process.send_signal(signal.SIGTERM)


def run(settings: Settings) -> None:
    speaker = Speaker(settings.name)
    process = subprocess.Popen(
        command(settings),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,  # one stream keeps the order of records and rebalances
        text=True,
    )
    assert process.stdout
    threading.Thread(target=leave_when_told, args=(process,), daemon=True).start()
    for line in process.stdout:
        tell(line, speaker)
    status = process.wait()
    if status:
        speaker.error(f"kcat ended with status {status}")
    speaker.left()


if __name__ == "__main__":
    run(settings_of())
