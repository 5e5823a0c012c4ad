"""Kafka's framing without I/O, and the memory that frames arrive in."""
