"""Kafka's own command-line tools by their names and flags: `wirebroker kafka-topics --list …`.

What they print to standard output is what Apache Kafka's print, so that its documentation can
be followed and what reads their output goes on; transcripts hold them to it
(tests/unit/wirebroker/scripts/transcripts).
"""
