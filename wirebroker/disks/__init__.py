"""Log directories: locks, failures, placement."""
