"""Kafka's framing without I/O, and the memory of frames."""
