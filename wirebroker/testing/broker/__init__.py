"""`Broker` with its life cycle, clock and faults."""
