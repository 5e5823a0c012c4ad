"""Headers, pending entries and dead letters, without I/O."""
