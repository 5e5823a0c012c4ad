"""Kafka's command-line tools with their names and flags: `wirebroker kafka-topics --list …`.

Standard output is the same as Apache Kafka's; transcripts check this
(tests/unit/wirebroker/cli/kafka/transcripts).
"""
